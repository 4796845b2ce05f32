"""The audit over the routes: who did what to which id, newest first, and of nobody else's tenant."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from coatcheck.app.compose import App
from coatcheck.identity.operations import EVERYTHING
from tests import apps
from tests.api.operations import EVERY_OPERATION, EXPORTED
from tests.apps import Caller
from tests.contract.working import job
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
        for name in ("theirs", "theirs too"):
            await theirs.post("/v1/admin/teams", json={"name": name})
        token = (await theirs.get("/v1/admin/audit?page_size=1")).json()["next_page_token"]

    assert await records(http, f"principal={stranger.principal_id}") == []
    assert str(stranger.principal_id) not in str(await records(http))
    assert token
    assert (await http.get(f"/v1/admin/audit?page_token={token}")).status_code == 422


async def test_the_audit_names_ids_and_never_content(app: App, http: httpx.AsyncClient) -> None:
    canary = f"canary{uuid4().hex}"
    made = (await http.post("/v1/compactions", json=request(canary))).json()
    await http.patch(f"/v1/sessions/{made['session_id']}", json={"visibility": "personal"})
    await http.post("/v1/admin/principals", json={"name": canary})
    await http.post("/v1/admin/keys", json={"name": canary})
    await http.post("/v1/delegations", json={"name": canary, "audience": ["api"], "operations": ["read"]})
    await http.delete(f"/v1/sessions/{made['session_id']}")

    found = await records(http)

    assert {"session.visibility.personal", "principal.create", "key.create", "delegation.create"} <= {
        record["action"] for record in found
    }
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
        ("session.visibility.personal", first["delegation_id"]),
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


LEFT_OUT = {
    # Who stored a window or an answer stands in its row; what only looks changes nothing.
    ("POST", "/v1/compactions"), ("POST", "/v1/cache/store"), ("POST", "/v1/cache/lookup"), ("POST", "/v1/recall"),
    ("POST", "/v1/erasures/verify"), ("POST", "/v1/admin/scan"),
}  # fmt: skip
TAKES_OUT = ("GET", "/v1/sessions/{session_id}/export")
ACTIONS = {
    ("POST", "/v1/import"): "session.import", TAKES_OUT: "session.export",
    ("PATCH", "/v1/sessions/{session_id}"): "session.visibility.public", ("DELETE", "/v1/sessions/{session_id}"): "session.erase",
    ("DELETE", "/v1/manifests/{manifest_id}"): "manifest.erase",
    ("POST", "/v1/admin/repair"): "job.repair", ("POST", "/v1/admin/reconcile"): "job.reconcile",
    ("POST", "/v1/admin/redact-rescan"): "job.redact-rescan",
    ("POST", "/v1/admin/keys"): "key.create", ("POST", "/v1/admin/keys/{key_id}/rotate"): "key.rotate",
    ("DELETE", "/v1/admin/keys/{key_id}"): "key.revoke",
    ("POST", "/v1/delegations"): "delegation.create", ("DELETE", "/v1/delegations/{delegation_id}"): "delegation.revoke",
    ("POST", "/v1/admin/issuers"): "issuer.create", ("DELETE", "/v1/admin/issuers"): "issuer.delete",
    ("POST", "/v1/admin/principals"): "principal.create", ("PATCH", "/v1/admin/principals/{principal_id}"): "principal.rename",
    ("POST", "/v1/admin/teams"): "team.create", ("DELETE", "/v1/admin/teams/{team_id}"): "team.delete",
    ("POST", "/v1/admin/memberships"): "membership.create",
    ("DELETE", "/v1/admin/memberships/{team_id}/{principal_id}"): "membership.delete",
    ("PUT", "/v1/admin/retention"): "retention.change", ("POST", "/v1/admin/tenants"): "tenant.create",
    ("PUT", "/v1/admin/tenants/{tenant_id}/limits"): "tenant.limits",
    ("DELETE", "/v1/admin/tenants/{tenant_id}"): "tenant.erase", ("POST", "/v1/cache/purge"): "cache.purge",
}  # fmt: skip


async def done_once_each(app: App, http: httpx.AsyncClient) -> None:
    """Every operation of ACTIONS."""

    async def did(method: str, path: str, body: object = None) -> dict[str, Any]:
        answer = await http.request(method, path, json=body)
        assert answer.is_success, (path, answer.text)
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

    made = [await did("POST", "/v1/compactions", request(f"s{n}", window(mark=f"m{n}"))) for n in range(2)]
    exported = await http.get(f"/v1/sessions/{made[0]['session_id']}/export")
    await did("PATCH", f"/v1/sessions/{made[0]['session_id']}", {"visibility": "public"})
    await did("DELETE", f"/v1/sessions/{made[0]['session_id']}")
    await did("DELETE", f"/v1/manifests/{made[1]['manifest_id']}")
    assert (await http.post("/v1/import", content=exported.content)).json()["sessions"] == 1
    for kind in ("repair", "reconcile", "redact-rescan"):
        await did("POST", f"/v1/admin/{kind}")
    key = await did("POST", "/v1/admin/keys", {"name": "n"})
    rotated = await did("POST", f"/v1/admin/keys/{key['key_id']}/rotate")
    await did("DELETE", f"/v1/admin/keys/{rotated['key_id']}")
    agent = await did("POST", "/v1/delegations", {"name": "n", "audience": ["api"], "operations": ["read"]})
    await did("DELETE", f"/v1/delegations/{agent['delegation_id']}")
    issuer = f"https://{uuid4()}.example/"
    await did("POST", "/v1/admin/issuers", {"issuer": issuer, "jwks_uri": "https://keys.example/jwks", "audience": "coatcheck"})
    await did("DELETE", f"/v1/admin/issuers?issuer={issuer}")
    ada = (await did("POST", "/v1/admin/principals", {"name": "ada"}))["principal_id"]
    await did("PATCH", f"/v1/admin/principals/{ada}", {"name": "ada l."})
    team = (await did("POST", "/v1/admin/teams", {"name": "team"}))["team_id"]
    await did("POST", "/v1/admin/memberships", {"team_id": team, "principal_id": ada})
    await did("DELETE", f"/v1/admin/memberships/{team}/{ada}")
    await did("DELETE", f"/v1/admin/teams/{team}")
    await did("PUT", "/v1/admin/retention", {"team": 9})
    tenant = (await did("POST", "/v1/admin/tenants", {"name": f"tenant {uuid4()}"}))["tenant_id"]
    await did("PUT", f"/v1/admin/tenants/{tenant}/limits", {"max_segments": 9})
    await did("DELETE", f"/v1/admin/tenants/{tenant}")
    await did("POST", "/v1/cache/purge", {"whose": "tenant"})


async def test_whatever_changes_something_or_takes_a_session_out_stands_in_the_audit(app: App, http: httpx.AsyncClient) -> None:
    changing = {operation for operation in EVERY_OPERATION if operation[0] != "GET"} | {TAKES_OUT}

    await done_once_each(app, http)
    found = await records(http, "page_size=200")

    assert changing == set(ACTIONS) | LEFT_OUT
    assert sorted(record["action"] for record in found) == sorted(ACTIONS.values())


async def test_the_audit_is_asked_for_one_action_a_kind_of_them_and_from_a_time_on(http: httpx.AsyncClient) -> None:
    made = (await http.post("/v1/compactions", json=request("taken out"))).json()["session_id"]
    await http.get(f"/v1/sessions/{made}/export")
    await http.patch(f"/v1/sessions/{made}", json={"visibility": "personal"})
    await http.post("/v1/admin/teams", json={"name": "team"})
    since = quote((await records(http))[0]["occurred_at"])

    of_sessions = await records(http, "action=session")

    assert [(one["action"], one["target_id"]) for one in of_sessions] == [
        ("session.visibility.personal", made), ("session.export", made),
    ]  # fmt: skip
    assert [one["action"] for one in await records(http, "action=session.export")] == ["session.export"]
    assert await records(http, "action=sess") == []
    assert [one["action"] for one in await records(http, f"since={since}")] == ["team.create"]
    token = (await http.get("/v1/admin/audit?action=session&page_size=1")).json()["next_page_token"]
    assert (await http.get(f"/v1/admin/audit?page_token={token}")).status_code == 422
    for wrong in ("action=%25", "since=yesterday", "since=2026-11-30T20:00:00"):
        assert (await http.get(f"/v1/admin/audit?{wrong}")).status_code == 422


async def test_an_export_that_is_refused_and_an_import_of_nothing_are_no_deeds(http: httpx.AsyncClient) -> None:
    refused = await http.get(f"/v1/sessions/{uuid4()}/export")
    empty = await http.post("/v1/import", content=EXPORTED)

    assert (refused.status_code, empty.status_code) == (404, 200)
    assert await records(http) == []


async def test_of_a_session_only_what_changed_is_told_and_a_scan_is_no_deed(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    made = (await http.post("/v1/compactions", json=request("shared"))).json()["session_id"]
    colleague = str((await apps.new_principal(app, operator.tenant_id)).principal_id)

    await http.patch(f"/v1/sessions/{made}", json={"participants": [colleague], "visibility": "conversation"})
    await http.patch(f"/v1/sessions/{made}", json={"participants": [colleague], "visibility": "public"})
    await job(http, "scan")

    assert [record["action"] for record in await records(http)] == ["session.visibility.public", "session.participants"]
