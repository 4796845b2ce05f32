"""The audit over the routes: who did what to which id, newest first, and of nobody else's tenant."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx

from coatcheck.app.compose import App
from coatcheck.identity.operations import EVERYTHING
from tests import apps
from tests.apps import Caller
from tests.windows import request, window


async def records(http: httpx.AsyncClient, query: str = "") -> list[dict[str, Any]]:
    answer = await http.get(f"/v1/admin/audit?{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["records"]
    return found


async def test_what_was_done_is_listed_newest_first_page_after_page(http: httpx.AsyncClient, operator: Caller) -> None:
    teams = [(await http.post("/v1/admin/teams", json={"name": f"team {n}"})).json()["team_id"] for n in range(5)]

    seen, token = [], ""
    while True:
        page = (await http.get(f"/v1/admin/audit?page_size=2{token}")).json()
        seen += [record["target_id"] for record in page["records"]]
        if page["next_page_token"] is None:
            break
        token = f"&page_token={page['next_page_token']}"
        # What is done meanwhile moves nothing on the pages that follow.
        await http.post("/v1/admin/teams", json={"name": "meanwhile"})

    assert seen == teams[::-1]
    first = (await records(http))[-1]
    assert (first["principal_id"], first["action"], first["target_kind"]) == (str(operator.principal_id), "team.create", "team")


async def test_one_principals_deeds_are_asked_for_with_a_token_that_serves_no_other(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    other = await apps.new_principal(app, operator.tenant_id, EVERYTHING)
    async with apps.client(app, other) as others:
        theirs = [(await others.post("/v1/admin/teams", json={"name": f"team {n}"})).json()["team_id"] for n in range(3)]
    await http.post("/v1/admin/teams", json={"name": "mine"})

    page = (await http.get(f"/v1/admin/audit?principal={other.principal_id}&page_size=2")).json()
    token = page["next_page_token"]

    assert [record["target_id"] for record in page["records"]] == theirs[:0:-1]
    assert [r["target_id"] for r in await records(http, f"principal={other.principal_id}&page_token={token}")] == theirs[:1]
    assert (await http.get(f"/v1/admin/audit?page_token={token}")).status_code == 422
    assert (await http.get(f"/v1/admin/audit?principal={uuid4()}&page_token={token}")).status_code == 422


async def test_T13_the_audit_shows_nothing_of_another_tenant_whoever_is_named(app: App, http: httpx.AsyncClient) -> None:
    stranger = await apps.new_tenant(app)
    async with apps.client(app, stranger) as theirs:
        await theirs.post("/v1/admin/teams", json={"name": "theirs"})
        token = (await theirs.get("/v1/admin/audit?page_size=1")).json()["next_page_token"]

    assert await records(http, f"principal={stranger.principal_id}") == []
    assert str(stranger.principal_id) not in str(await records(http))
    assert token is None or (await http.get(f"/v1/admin/audit?page_token={token}")).status_code == 422


async def test_the_audit_names_ids_and_never_content(app: App, http: httpx.AsyncClient) -> None:
    canary = f"canary{uuid4().hex}"
    made = (await http.post("/v1/compactions", json=request(canary))).json()
    await http.patch(f"/v1/sessions/{made['session_id']}", json={"visibility": "personal"})
    await http.post("/v1/admin/principals", json={"name": canary})
    await http.post("/v1/admin/keys", json={"name": canary})
    await http.post("/v1/delegations", json={"name": canary, "audience": ["api"], "operations": ["read"]})
    await http.delete(f"/v1/sessions/{made['session_id']}")

    found = await records(http)

    assert {"session.patch", "principal.create", "key.create", "delegation.create"} <= {record["action"] for record in found}
    assert canary not in str(found)


async def test_what_a_delegate_did_names_the_delegation_and_whose_it_is(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    made = [(await http.post("/v1/compactions", json=request(f"s{n}", window(mark=f"m{n}")))).json() for n in range(3)]
    asked = {"name": "agent", "audience": ["api"], "operations": ["sessions", "erase", "delegate", "cache"]}
    first = (await http.post("/v1/delegations", json=asked)).json()
    async with apps.client(app, Caller(operator.tenant_id, operator.principal_id, first["credential"])) as agent:
        await agent.patch(f"/v1/sessions/{made[0]['session_id']}", json={"visibility": "personal"})
        await agent.delete(f"/v1/sessions/{made[0]['session_id']}")
        await agent.delete(f"/v1/manifests/{made[1]['manifest_id']}")
        second = (await agent.post("/v1/delegations", json={**asked, "operations": ["erase"]})).json()
    async with apps.client(app, Caller(operator.tenant_id, operator.principal_id, second["credential"])) as below:
        await below.delete(f"/v1/sessions/{made[1]['session_id']}")
    await http.delete(f"/v1/sessions/{made[2]['session_id']}")

    found = await records(http)

    assert {one["principal_id"] for one in found} == {str(operator.principal_id)}
    assert [(one["action"], one["delegation_id"]) for one in reversed(found)] == [
        ("delegation.create", None),
        ("session.patch", first["delegation_id"]),
        ("session.erase", first["delegation_id"]),
        ("manifest.erase", first["delegation_id"]),
        ("delegation.create", first["delegation_id"]),
        ("session.erase", second["delegation_id"]),
        ("session.erase", None),
    ]


async def test_a_member_and_a_key_without_the_right_read_no_audit(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    for operations in (frozenset({"read"}), EVERYTHING - {"audit"}):
        async with apps.client(app, await apps.new_principal(app, operator.tenant_id, operations)) as client:
            assert (await client.get("/v1/admin/audit")).status_code == 403
