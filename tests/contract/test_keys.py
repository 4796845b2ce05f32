"""Keys and tenants over the routes: nobody hands out more than it holds, and what is revoked is refused with the next request."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from coatcheck.app.compose import App
from coatcheck.identity.operations import EVERYTHING, MEMBER, OPERATOR
from tests import apps, rpc
from tests.apps import Caller
from tests.contract.routes import everything_said, statuses
from tests.windows import request, window


async def made(http: httpx.AsyncClient, **asked: object) -> dict[str, Any]:
    answer = await http.post("/v1/admin/keys", json={"name": "a key", **asked})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def using(app: App, key: str) -> httpx.AsyncClient:
    """A client with a key that nobody is known to have."""
    return apps.client(app, Caller(UUID(int=1), UUID(int=1), key))


async def compacted(http: httpx.AsyncClient, session: str, mark: str) -> dict[str, Any]:
    answer = await http.post("/v1/compactions", json=request(session, window(mark=mark)))
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def soon(seconds: float = 3_600) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def test_a_key_is_shown_once_and_listed_without_its_secret(app: App, http: httpx.AsyncClient) -> None:
    key = await made(http, operations=["read"], expires_at=soon())

    listed = (await http.get("/v1/admin/keys")).json()["keys"]
    async with using(app, key["key"]) as client:
        read = await client.get(f"/v1/manifests/{uuid4()}")
        forbidden = await client.get("/v1/sessions")

    assert (read.status_code, forbidden.status_code) == (404, 403)
    mine = next(one for one in listed if one["key_id"] == key["key_id"])
    assert mine == {**key, "key": None}
    assert key["key"] not in str(listed)


async def test_keys_are_listed_page_after_page(http: httpx.AsyncClient) -> None:
    keys = {(await made(http, name=f"key {n}"))["key_id"] for n in range(5)}

    seen: list[str] = []
    token: str | None = None
    while True:
        page = (await http.get("/v1/admin/keys", params={"page_size": 2, **({"page_token": token} if token else {})})).json()
        seen += [key["key_id"] for key in page["keys"]]
        token = page["next_page_token"]
        if token is None:
            break

    assert len(seen) == len(set(seen)) == 6
    assert keys < set(seen)
    assert (await http.get("/v1/admin/keys", params={"page_token": "abcd" * 8})).status_code == 422


async def test_a_revoked_key_and_an_expired_one_are_refused_with_the_next_request(app: App, http: httpx.AsyncClient) -> None:
    revoked, brief = await made(http), await made(http, expires_at=soon(2))
    async with using(app, revoked["key"]) as first, using(app, brief["key"]) as second:
        before = [(await client.get("/v1/sessions")).status_code for client in (first, second)]

        assert (await http.delete(f"/v1/admin/keys/{revoked['key_id']}")).status_code == 204
        await asyncio.sleep(2)
        after = [(await client.get("/v1/sessions")).status_code for client in (first, second)]

    assert before == [200, 200]
    assert after == [401, 401]
    assert (await http.post(f"/v1/admin/keys/{brief['key_id']}/rotate")).status_code == 404
    assert (await http.delete(f"/v1/admin/keys/{revoked['key_id']}")).status_code == 204
    assert (await http.delete(f"/v1/admin/keys/{uuid4()}")).status_code == 404


async def test_a_key_that_would_have_ended_already_is_not_made(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/admin/keys", json={"name": "late", "expires_at": soon(-1)})

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/expires_at"]
    assert "late" not in {key["name"] for key in (await http.get("/v1/admin/keys")).json()["keys"]}


async def test_power_over_tenants_is_handed_to_another_operator_only_by_name(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    colleague = str((await apps.new_principal(app, operator.tenant_id, OPERATOR)).principal_id)

    own, silent = await made(http), await made(http, principal_id=colleague)
    named = await made(http, principal_id=colleague, operations=["tenants"])

    assert set(own["operations"]) == EVERYTHING
    assert set(silent["operations"]) == OPERATOR
    assert named["operations"] == ["tenants"]


async def test_nobody_revokes_a_key_with_more_rights_than_its_own(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    colleague = await apps.new_principal(app, operator.tenant_id)
    theirs = await made(http, principal_id=str(colleague.principal_id), operations=["read"])
    installation = await made(http)
    equal, less, more = [await made(http, operations=given) for given in (["keys", "read"], ["read"], ["keys", "read", "recall"])]
    revoking = await made(http, operations=["keys", "read"])
    tenant_only = await made(http, operations=sorted(OPERATOR))

    async def revoked(by: dict[str, Any], key: dict[str, Any]) -> int:
        async with using(app, by["key"]) as client:
            return (await client.delete(f"/v1/admin/keys/{key['key_id']}")).status_code

    assert [await revoked(revoking, key) for key in (installation, more, tenant_only)] == [403] * 3
    assert await revoked(revoking, theirs) == 404
    assert await revoked(tenant_only, installation) == 403
    async with using(app, more["key"]) as still:
        assert (await still.post("/v1/recall", json={"query": "pool"})).status_code == 200
    assert [await revoked(revoking, key) for key in (equal, less, revoking)] == [204] * 3
    assert [await revoked(tenant_only, key) for key in (theirs, more, tenant_only)] == [204] * 3


async def test_who_is_no_operator_handles_its_own_keys_and_is_not_told_of_others(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    colleague = await apps.new_principal(app, operator.tenant_id)
    theirs = await made(http, principal_id=str(colleague.principal_id), operations=["read"])
    narrow = await made(http, operations=["keys", "read"])

    async with using(app, narrow["key"]) as client:
        listed = (await client.get("/v1/admin/keys?page_size=200")).json()["keys"]
        at_theirs = await client.post(f"/v1/admin/keys/{theirs['key_id']}/rotate")
        at_nothing = await client.post(f"/v1/admin/keys/{uuid4()}/rotate")

    assert {key["principal_id"] for key in listed} == {str(operator.principal_id)}
    assert narrow["key_id"] in {key["key_id"] for key in listed}
    assert {**at_theirs.json(), "instance": ""} == {**at_nothing.json(), "instance": ""}
    assert theirs["key_id"] in {key["key_id"] for key in (await http.get("/v1/admin/keys?page_size=200")).json()["keys"]}


async def test_a_rotated_key_has_the_old_ones_rights_and_the_old_one_none(app: App, http: httpx.AsyncClient) -> None:
    old = await made(http, operations=["sessions"], sessions=[str(uuid4())], expires_at=soon())

    rotated = await http.post(f"/v1/admin/keys/{old['key_id']}/rotate")

    new = rotated.json()
    assert rotated.status_code == 201
    same = ("name", "principal_id", "operations", "sessions", "expires_at")
    assert {name: new[name] for name in same} == {name: old[name] for name in same}
    assert new["key"] != old["key"]
    async with using(app, old["key"]) as before, using(app, new["key"]) as now:
        assert ((await before.get("/v1/sessions")).status_code, (await now.get("/v1/sessions")).status_code) == (401, 200)
    assert (await http.post(f"/v1/admin/keys/{old['key_id']}/rotate")).status_code == 404
    assert (await http.post(f"/v1/admin/keys/{uuid4()}/rotate")).status_code == 404


async def test_no_key_grants_more_than_its_maker_holds(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    colleague = await apps.new_principal(app, operator.tenant_id)
    session, other = str(uuid4()), str(uuid4())
    everything = await made(http)
    narrow = await made(http, operations=["keys", "read"], sessions=[session], expires_at=soon())
    wide = await made(http, operations=["keys", "read"])
    outside: list[tuple[str, dict[str, object]]] = [
        (narrow["key"], {"operations": ["keys", "read", "recall"]}),
        (narrow["key"], {"sessions": [session, other]}),
        (narrow["key"], {"sessions": [other]}),
        (narrow["key"], {"expires_at": soon(7_200)}),
        (narrow["key"], {"principal_id": str(colleague.principal_id)}),
        (wide["key"], {"operations": sorted(EVERYTHING)}),
        (wide["key"], {"principal_id": str(colleague.principal_id), "operations": ["read"]}),
    ]

    for key, asked in outside:
        async with using(app, key) as client:
            answer = await client.post("/v1/admin/keys", json={"name": "more", **asked})
        assert (answer.status_code, answer.json()["type"].rsplit(":", 1)[-1]) == (403, "forbidden"), asked
    for key, status in ((narrow["key"], 404), (wide["key"], 403)):
        async with using(app, key) as client:
            # What it could not make it does not get by rotating either; for a key of some sessions it is not there.
            assert (await client.post(f"/v1/admin/keys/{everything['key_id']}/rotate")).status_code == status
    async with using(app, everything["key"]) as still:
        assert (await still.get("/v1/sessions")).status_code == 200
    async with using(app, narrow["key"]) as client:
        silent = (await client.post("/v1/admin/keys", json={"name": "the same"})).json()
    assert (silent["operations"], silent["sessions"]) == (["keys", "read"], [session])
    assert silent["expires_at"] == narrow["expires_at"]


@pytest.mark.parametrize("operations", [["keys", "read"], sorted(OPERATOR)], ids=["no operator's", "an operator's"])
async def test_a_key_of_some_sessions_lists_and_revokes_the_keys_of_these_alone(
    app: App, operator: Caller, http: httpx.AsyncClient, operations: list[str]
) -> None:
    """And its own principal's alone, whatever it may do there."""
    mine, elsewhere = str(uuid4()), str(uuid4())
    colleague = await apps.new_principal(app, operator.tenant_id)
    narrow = await made(http, operations=operations, sessions=[mine])
    of_mine = await made(http, operations=["read"], sessions=[mine])
    others = [await made(http), await made(http, sessions=[elsewhere]), await made(http, sessions=[mine, elsewhere])]
    others.append(await made(http, principal_id=str(colleague.principal_id), operations=["read"], sessions=[mine]))

    async with using(app, narrow["key"]) as client:
        listed = [key["key_id"] for key in (await client.get("/v1/admin/keys")).json()["keys"]]
        refused = [await client.delete(f"/v1/admin/keys/{key['key_id']}") for key in others]
        revoked = await client.delete(f"/v1/admin/keys/{of_mine['key_id']}")

    assert listed == [narrow["key_id"], of_mine["key_id"]]
    assert [answer.status_code for answer in refused] == [404] * 4
    assert revoked.status_code == 204


async def test_a_member_makes_no_keys_and_an_operator_makes_them_for_others(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    member = await apps.new_principal(app, operator.tenant_id, MEMBER)
    async with apps.client(app, member) as members:
        refused = [
            await members.post("/v1/admin/keys", json={"name": "mine"}), await members.get("/v1/admin/keys"),
            await members.delete(f"/v1/admin/keys/{uuid4()}"), await members.post(f"/v1/admin/keys/{uuid4()}/rotate"),
        ]  # fmt: skip
        mine = await compacted(members, "s", "alpha")

    theirs = await made(http, principal_id=str(member.principal_id), operations=["read"])

    assert {answer.status_code for answer in refused} == {403}
    async with using(app, theirs["key"]) as client:
        assert (await client.get(f"/v1/manifests/{mine['manifest_id']}")).status_code == 200
    stranger = await apps.new_tenant(app)
    unknown = await http.post("/v1/admin/keys", json={"name": "x", "principal_id": str(uuid4())})
    foreign = await http.post("/v1/admin/keys", json={"name": "x", "principal_id": str(stranger.principal_id)})
    assert (unknown.status_code, foreign.status_code) == (422, 422)
    assert unknown.json()["detail"] == foreign.json()["detail"]


@pytest.mark.parametrize(
    "asked",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"operations": ["fly"]},
        {"sessions": ["no uuid"]},
        {"expires_at": "soon"},
        {"tenant_id": "x"},
    ],
)
async def test_a_key_that_makes_no_sense_is_refused(http: httpx.AsyncClient, asked: dict[str, object]) -> None:
    assert (await http.post("/v1/admin/keys", json={"name": "a key", **asked})).status_code == 422


async def test_a_key_for_some_sessions_reaches_no_other_by_any_route(app: App, http: httpx.AsyncClient) -> None:
    mine, other = await compacted(http, "mine", "alpha"), await compacted(http, "other", "beta")
    sha = (await http.get(f"/v1/manifests/{other['manifest_id']}/entries")).json()["entries"][0]["sha256"]
    key = await made(http, sessions=[mine["session_id"]])

    async with using(app, key["key"]) as kept:
        reached = await statuses(kept, session_id=mine["session_id"], manifest_id=mine["manifest_id"])
        refused = await statuses(kept, session_id=other["session_id"], manifest_id=other["manifest_id"], sha256=sha)
        writes = [
            await kept.delete(f"/v1/sessions/{other['session_id']}"),
            await kept.delete(f"/v1/manifests/{other['manifest_id']}"),
            await kept.patch(f"/v1/sessions/{other['session_id']}", json={"visibility": "public"}),
            await kept.post("/v1/compactions", json=request(other["session_id"], window(mark="gamma"))),
            await kept.post("/v1/compactions", json=request("other", window(mark="gamma"))),
            await kept.post("/v1/compactions", json=request("a new one", window(mark="gamma"))),
            await kept.post("/v1/recall", json={"query": "beta", "session": "other"}),
        ]
        tool = await rpc.call(kept, "compact_context", **request("other", window(mark="gamma")))
        said = await everything_said(kept, ["beta health failed", "alpha health failed", "service worker heartbeat"])
        sessions = (await kept.get("/v1/sessions")).json()["sessions"]
        jobs = [await kept.post(f"/v1/admin/{kind}") for kind in ("scan", "repair", "reconcile", "redact-rescan")]
        own = await kept.post("/v1/compactions", json=request("mine", window(mark="delta")))

    assert set(reached.values()) == {200}
    assert set(refused.values()) == {404}, refused
    assert {answer.status_code for answer in writes} == {404}
    assert tool["structuredContent"]["status"] == 404
    assert "/alpha/health" in said
    assert "/beta/health" not in said
    assert [session["session_id"] for session in sessions] == [mine["session_id"]]
    assert {answer.status_code for answer in jobs} == {403}
    assert own.status_code == 201
    assert (await http.get(f"/v1/manifests/{other['manifest_id']}")).status_code == 200


async def test_tenants_are_made_and_listed_by_the_installations_operator_alone(app: App, http: httpx.AsyncClient) -> None:
    name = f"tenant {uuid4()}"
    created = await http.post("/v1/admin/tenants", json={"name": name})
    again = await http.post("/v1/admin/tenants", json={"name": name})

    assert created.status_code == 201, created.text
    assert again.status_code == 422
    tenant = created.json()
    assert tenant["tenant_id"] in [one["tenant_id"] for one in (await http.get("/v1/admin/tenants")).json()["tenants"]]
    assert tenant["key"] not in (await http.get("/v1/admin/tenants")).text
    async with using(app, tenant["key"]) as first:
        refused = [await first.post("/v1/admin/tenants", json={"name": "mine"}), await first.get("/v1/admin/tenants")]
        own = (await first.get("/v1/admin/keys")).json()["keys"]
        more = await first.post("/v1/admin/keys", json={"name": "more", "operations": ["tenants"]})
        stored = await compacted(first, "s", "alpha")
    assert [answer.status_code for answer in refused] == [403, 403]
    assert [set(key["operations"]) for key in own] == [set(OPERATOR)]
    assert more.status_code == 403
    assert (await http.get(f"/v1/manifests/{stored['manifest_id']}")).status_code == 404
