"""Delegations over the routes: a delegate does less than its maker, through fewer doors, and ends with whatever it came from."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from coatcheck.app.compose import App
from coatcheck.identity.operations import EVERYTHING, MEMBER
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.delegations import MAX_DEPTH
from coatcheck.store import audit
from tests import apps, rpc
from tests.apps import Caller
from tests.contract.routes import everything_said, statuses
from tests.windows import request, window

READING = {"audience": ["api", "mcp"], "operations": ["read", "recall", "sessions", "export", "delegate"]}


async def delegated(http: httpx.AsyncClient, **asked: object) -> dict[str, Any]:
    answer = await http.post("/v1/delegations", json={"name": "an agent", **READING, **asked})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def using(app: App, credential: str) -> httpx.AsyncClient:
    return apps.client(app, Caller(UUID(int=1), UUID(int=1), credential))


async def status_of(app: App, credential: str, path: str = "/v1/sessions") -> int:
    async with using(app, credential) as client:
        return (await client.get(path)).status_code


async def foreign_candidates(http: httpx.AsyncClient) -> list[str]:
    return [line for line in (await http.get("/metrics")).text.splitlines() if "foreign_candidates" in line]


async def compacted(http: httpx.AsyncClient, session: str, mark: str) -> dict[str, Any]:
    answer = await http.post("/v1/compactions", json=request(session, window(mark=mark)))
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_delegate_acts_for_its_maker_and_its_secret_is_shown_once(app: App, http: httpx.AsyncClient) -> None:
    mine = await compacted(http, "mine", "alpha")

    made = await delegated(http, expires_in_s=600)

    assert made["credential"].startswith("cd_")
    assert (made["depth"], made["sessions"], made["audience"]) == (1, None, ["api", "mcp"])
    ends_in = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(seconds=500) < ends_in <= timedelta(seconds=600)
    listed = (await http.get("/v1/delegations")).json()["delegations"]
    assert listed == [{**made, "credential": None}]
    async with using(app, made["credential"]) as agent:
        assert (await agent.get(f"/v1/manifests/{mine['manifest_id']}/window")).status_code == 200
        assert (await agent.delete(f"/v1/sessions/{mine['session_id']}")).status_code == 403
        assert (await agent.post("/v1/compactions", json=request("mine"))).status_code == 403


async def test_no_delegate_gets_what_its_maker_does_not_hold(app: App, http: httpx.AsyncClient) -> None:
    session, other = str(uuid4()), str(uuid4())
    narrow = (
        await http.post(
            "/v1/admin/keys",
            json={
                "name": "narrow",
                "operations": ["read", "delegate", "keys"],
                "sessions": [session],
                "expires_at": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
            },
        )
    ).json()
    asked: list[dict[str, object]] = [
        {"operations": ["read", "recall"]},
        {"operations": ["read", "keys"]},
        {"operations": ["read"], "sessions": [session, other]},
        {"operations": ["read"], "sessions": [other]},
        {"operations": ["read"], "expires_in_s": 7_200},
    ]

    async with using(app, narrow["key"]) as client:
        refused = [await client.post("/v1/delegations", json={"name": "more", "audience": ["api"], **more}) for more in asked]
        silent = await delegated(client, operations=["read"])

    assert [answer.status_code for answer in refused] == [403] * len(asked)
    assert silent["sessions"] == [session]
    assert datetime.fromisoformat(silent["expires_at"]) == datetime.fromisoformat(narrow["expires_at"])


@pytest.mark.parametrize("operation", sorted(EVERYTHING - MEMBER))
async def test_what_administers_is_never_delegated(http: httpx.AsyncClient, operation: str) -> None:
    asked = {"name": "x", "audience": ["api"], "operations": ["read", operation]}

    assert (await http.post("/v1/delegations", json=asked)).status_code == 403


async def test_a_delegate_of_an_operator_is_no_operator(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    member = await apps.new_principal(app, operator.tenant_id)
    async with apps.client(app, member) as members:
        theirs = await compacted(members, "theirs", "beta")
    made = await delegated(http, operations=sorted(MEMBER))

    async with using(app, made["credential"]) as agent:
        answers = [
            await agent.delete(f"/v1/sessions/{theirs['session_id']}"),
            await agent.patch(f"/v1/sessions/{theirs['session_id']}", json={"visibility": "public"}),
            await agent.delete(f"/v1/manifests/{theirs['manifest_id']}"),
        ]
        keys = await agent.post("/v1/admin/keys", json={"name": "lasting"})

    assert {answer.status_code for answer in answers} == {404}
    assert keys.status_code == 403


async def test_T29_a_delegate_kept_to_a_session_reaches_no_other_by_any_route_or_tool(app: App, http: httpx.AsyncClient) -> None:
    mine, other = await compacted(http, "kept", "alpha"), await compacted(http, "other", "beta")
    sha = (await http.get(f"/v1/manifests/{other['manifest_id']}/entries")).json()["entries"][0]["sha256"]
    made = await delegated(http, sessions=[mine["session_id"]], operations=sorted(MEMBER))

    async with using(app, made["credential"]) as agent:
        reached = await statuses(agent, session_id=mine["session_id"], manifest_id=mine["manifest_id"])
        refused = await statuses(agent, session_id=other["session_id"], manifest_id=other["manifest_id"], sha256=sha)
        said = await everything_said(agent, ["beta health failed", "alpha health failed"])
        writes = [
            await agent.post("/v1/compactions", json=request("other", window(mark="gamma"))),
            await agent.post("/v1/compactions", json=request("a new one", window(mark="gamma"))),
        ]

    assert set(reached.values()) == {200}, reached
    assert set(refused.values()) == {404}, refused
    assert {answer.status_code for answer in writes} == {404}
    assert "/alpha/health" in said
    assert "/beta/health" not in said


async def test_T29_what_was_erased_elsewhere_never_was_for_a_delegate(app: App, http: httpx.AsyncClient) -> None:
    """Neither by its ids nor by the very request that once stored it, which the delegate may send as its maker did."""
    mine, gone = await compacted(http, "kept still", "alpha"), await compacted(http, "gone", "beta")
    sha = (await http.get(f"/v1/manifests/{gone['manifest_id']}/entries")).json()["entries"][0]["sha256"]
    made = await delegated(http, sessions=[mine["session_id"]], operations=sorted(MEMBER))
    assert (await http.delete(f"/v1/sessions/{gone['session_id']}")).status_code == 204

    async with using(app, made["credential"]) as agent:
        told = await statuses(agent, session_id=gone["session_id"], manifest_id=gone["manifest_id"], sha256=sha)
        again = await agent.post("/v1/compactions", json=request("gone", window(mark="beta")))
        unknown = await agent.post("/v1/compactions", json=request("never was", window(mark="beta")))
    known = await statuses(http, session_id=gone["session_id"], manifest_id=gone["manifest_id"], sha256=sha)

    assert set(told.values()) == {404}, told
    assert {**again.json(), "instance": ""} == {**unknown.json(), "instance": ""}
    assert (again.status_code, set(known.values())) == (404, {410})
    assert (await http.post("/v1/compactions", json=request("gone", window(mark="beta")))).status_code == 410


async def test_T10_a_key_that_is_kept_to_no_session_reaches_none(app: App, http: httpx.AsyncClient) -> None:
    """None is not all: no leg is asked for more than it may show."""
    mine = await compacted(http, "mine", "alpha")
    asked = {"name": "of nothing", "sessions": [], "operations": sorted(MEMBER)}
    key = (await http.post("/v1/admin/keys", json=asked)).json()
    before = await foreign_candidates(http)

    async with using(app, key["key"]) as nobody:
        told = await statuses(nobody, session_id=mine["session_id"], manifest_id=mine["manifest_id"])
        said = await everything_said(nobody, ["alpha health failed"])

    assert set(told.values()) == {404}, told
    assert "/alpha/health" not in said
    assert await foreign_candidates(http) == before


async def test_a_delegate_comes_through_the_doors_of_its_audience_alone(app: App, http: httpx.AsyncClient) -> None:
    made = {door: (await delegated(http, audience=[door]))["credential"] for door in ("api", "mcp", "gateway")}
    nowhere = await http.get("/v1/nowhere", headers={"Authorization": "Bearer nonsense"})

    async def at(door: str) -> tuple[int, int]:
        async with using(app, made[door]) as client:
            return (await client.get("/v1/sessions")).status_code, (await rpc.post(client, "tools/list")).status_code

    assert await at("api") == (200, 401)
    assert await at("mcp") == (401, 200)
    assert await at("gateway") == (401, 401)
    async with using(app, made["gateway"]) as client:
        wrong_door = await client.get("/v1/sessions")
    assert {**wrong_door.json(), "instance": ""} == {**nowhere.json(), "instance": ""}
    async with using(app, made["api"]) as agent:
        wider = await agent.post("/v1/delegations", json={"name": "x", "audience": ["api", "mcp"], "operations": ["read"]})
        assert wider.status_code == 403


async def test_a_delegate_delegates_less_and_not_without_end(app: App, http: httpx.AsyncClient) -> None:
    chain = [await delegated(http, expires_in_s=3_600)]
    while len(chain) < MAX_DEPTH - 1:
        async with using(app, chain[-1]["credential"]) as agent:
            chain.append(await delegated(agent, expires_in_s=1_800))

    async with using(app, chain[-1]["credential"]) as agent:
        forever = await agent.post("/v1/delegations", json={"name": "x", **READING, "expires_in_s": 60})
        last = await delegated(agent, operations=["sessions"], expires_in_s=60)
        wider = [
            await agent.post("/v1/delegations", json={"name": "x", "audience": ["api"], "operations": ["sessions"], **more})
            for more in ({"operations": ["compact"]}, {"expires_in_s": 3_600}, {"audience": ["gateway"]})
        ]
    async with using(app, last["credential"]) as leaf:
        no_further = await leaf.post("/v1/delegations", json={"name": "x", "audience": ["api"], "operations": ["sessions"]})
        seen = (await leaf.get("/v1/sessions")).status_code

    assert (last["depth"], last["parent_delegation_id"]) == (MAX_DEPTH, chain[-1]["delegation_id"])
    assert forever.status_code == 403
    assert {answer.status_code for answer in wider} == {403}
    assert (no_further.status_code, seen) == (403, 200)


async def test_with_a_delegate_all_below_it_ends_and_nothing_beside_it(app: App, http: httpx.AsyncClient) -> None:
    top, beside = await delegated(http, expires_in_s=600), await delegated(http)
    async with using(app, top["credential"]) as agent:
        below = await delegated(agent, expires_in_s=60)

    revoked = await http.delete(f"/v1/delegations/{top['delegation_id']}")

    assert revoked.status_code == 204
    assert [await status_of(app, one["credential"]) for one in (top, below, beside)] == [401, 401, 200]


@pytest.mark.parametrize("end", ["revoked", "rotated", "expired", "principal deactivated"])
async def test_a_delegate_ends_with_the_key_that_made_it(app: App, http: httpx.AsyncClient, end: str) -> None:
    principal = (await http.post("/v1/admin/principals", json={"name": "ada"})).json()
    ends = {"expires_at": (datetime.now(UTC) + timedelta(seconds=3)).isoformat()} if end == "expired" else {}
    key = (await http.post("/v1/admin/keys", json={"name": "k", "principal_id": principal["principal_id"], **ends})).json()
    async with using(app, key["key"]) as client:
        top = await delegated(client, expires_in_s=2 if end == "expired" else 600)
    async with using(app, top["credential"]) as agent:
        below = await delegated(agent, expires_in_s=1)
        lasting = top if end == "expired" else await delegated(agent, expires_in_s=60)
    assert [await status_of(app, one["credential"]) for one in (top, lasting)] == [200, 200]

    match end:
        case "revoked":
            await http.delete(f"/v1/admin/keys/{key['key_id']}")
        case "rotated":
            await http.post(f"/v1/admin/keys/{key['key_id']}/rotate")
        case "expired":
            await asyncio.sleep(2.1)
        case _:
            await http.patch(f"/v1/admin/principals/{principal['principal_id']}", json={"status": "inactive"})

    assert [await status_of(app, one["credential"]) for one in (top, lasting)] == [401, 401]
    assert below["expires_at"] <= top["expires_at"]


async def test_a_delegate_loses_with_its_principals_role_and_teams_what_they_gave(app: App, http: httpx.AsyncClient) -> None:
    principal = (await http.post("/v1/admin/principals", json={"name": "ada"})).json()["principal_id"]
    team = (await http.post("/v1/admin/teams", json={"name": "team"})).json()["team_id"]
    await http.post("/v1/admin/memberships", json={"team_id": team, "principal_id": principal})
    key = (await http.post("/v1/admin/keys", json={"name": "k", "principal_id": principal})).json()["key"]
    owner = await _joined(http, team)
    async with using(app, owner) as client:
        shared = (await client.post("/v1/compactions", json=request("s", visibility=f"team:{team}"))).json()
    async with using(app, key) as client:
        agent = await delegated(client)
    path = f"/v1/manifests/{shared['manifest_id']}"
    assert await status_of(app, agent["credential"], path) == 200

    await http.delete(f"/v1/admin/memberships/{team}/{principal}")

    assert await status_of(app, agent["credential"], path) == 404


async def _joined(http: httpx.AsyncClient, team: str) -> str:
    principal = (await http.post("/v1/admin/principals", json={"name": "owner"})).json()["principal_id"]
    await http.post("/v1/admin/memberships", json={"team_id": team, "principal_id": principal})
    return str((await http.post("/v1/admin/keys", json={"name": "k", "principal_id": principal})).json()["key"])


async def test_each_sees_and_ends_its_own_and_an_operator_anybodys(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    ada, bob = [await apps.new_principal(app, operator.tenant_id) for _ in range(2)]
    stranger = await apps.new_tenant(app)
    async with apps.client(app, ada) as adas, apps.client(app, bob) as bobs, apps.client(app, stranger) as theirs:
        top, beside = await delegated(adas), await delegated(adas)
        async with using(app, top["credential"]) as agent:
            below = await delegated(agent, expires_in_s=60)
            seen_by_agent = {one["delegation_id"] for one in (await agent.get("/v1/delegations")).json()["delegations"]}
            not_the_agents = [(await agent.delete(f"/v1/delegations/{one['delegation_id']}")).status_code for one in (top, beside)]
            the_agents = (await agent.delete(f"/v1/delegations/{below['delegation_id']}")).status_code
        paged = await _all_pages(adas)
        seen_by_others = [(await client.get("/v1/delegations")).json()["delegations"] for client in (bobs, theirs, http)]
        foreign = [(await client.delete(f"/v1/delegations/{top['delegation_id']}")).status_code for client in (bobs, theirs)]
        by_operator = (await http.delete(f"/v1/delegations/{top['delegation_id']}")).status_code

    assert seen_by_agent == {below["delegation_id"]}
    assert (not_the_agents, the_agents) == ([404, 404], 204)
    assert paged == [one["delegation_id"] for one in (top, beside, below)]
    assert seen_by_others == [[], [], []]
    assert (foreign, by_operator) == ([404, 404], 204)
    assert await status_of(app, top["credential"]) == 401


async def test_a_key_of_some_sessions_sees_and_ends_the_delegates_of_these_alone(app: App, http: httpx.AsyncClient) -> None:
    mine, elsewhere = str(uuid4()), str(uuid4())
    narrow = (await http.post("/v1/admin/keys", json={"name": "narrow", "sessions": [mine]})).json()
    of_mine = await delegated(http, sessions=[mine])
    others = [await delegated(http), await delegated(http, sessions=[elsewhere]), await delegated(http, sessions=[mine, elsewhere])]

    async with using(app, narrow["key"]) as client:
        listed = [one["delegation_id"] for one in (await client.get("/v1/delegations")).json()["delegations"]]
        refused = [(await client.delete(f"/v1/delegations/{one['delegation_id']}")).status_code for one in others]
        revoked = await client.delete(f"/v1/delegations/{of_mine['delegation_id']}")

    assert listed == [of_mine["delegation_id"]]
    assert (refused, revoked.status_code) == ([404] * 3, 204)
    assert [await status_of(app, one["credential"]) for one in (*others, of_mine)] == [200, 200, 200, 401]


async def _all_pages(http: httpx.AsyncClient) -> list[str]:
    seen, token = [], ""
    while True:
        page = (await http.get(f"/v1/delegations?page_size=1{token}")).json()
        seen += [one["delegation_id"] for one in page["delegations"]]
        if page["next_page_token"] is None:
            return seen
        token = f"&page_token={page['next_page_token']}"


async def test_a_key_and_a_delegation_are_not_taken_for_each_other(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    made = await delegated(http)

    for text in ("ck" + made["credential"][2:], "cd" + operator.key[2:], made["credential"][:-1], made["credential"] + "A"):
        assert await status_of(app, text) == 401


async def test_delegations_are_audited_by_id_alone(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    made = await delegated(http, name="Secretname")
    await http.delete(f"/v1/delegations/{made['delegation_id']}")

    rows = await app.parts.database.work(tenant_scope(operator.tenant_id), lambda tx: audit.page(tx, None, 100))

    assert [(row.action, row.target_id, row.principal_id) for row in rows] == [
        ("delegation.create", made["delegation_id"], operator.principal_id),
        ("delegation.revoke", made["delegation_id"], operator.principal_id),
    ]
    assert "Secretname" not in str(rows)


@pytest.mark.parametrize(
    "asked",
    [
        {"audience": []},
        {"audience": ["web"]},
        {"operations": []},
        {"operations": ["fly"]},
        {"sessions": []},
        {"expires_in_s": 0},
        {"expires_in_s": 24 * 3_600 + 1},
        {"expires_in_s": 10**30},
        {"principal_id": str(uuid4())},
        {"tenant_id": str(uuid4())},
    ],
)
async def test_a_delegation_that_makes_no_sense_is_refused(http: httpx.AsyncClient, asked: dict[str, object]) -> None:
    assert (await http.post("/v1/delegations", json={"name": "x", **READING, **asked})).status_code == 422
