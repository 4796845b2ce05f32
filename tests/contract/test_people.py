"""Principals, teams and memberships over the routes: who may make whom, and what counts from when."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from coatcheck.app.compose import App
from coatcheck.identity.operations import MEMBER, OPERATOR
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import audit, directory
from tests import apps
from tests.apps import Caller

ISSUER = "https://login.example.org/"


async def made(http: httpx.AsyncClient, kind: str, **asked: object) -> dict[str, Any]:
    answer = await http.post(f"/v1/admin/{kind}", json=asked)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def key_for(http: httpx.AsyncClient, principal_id: str, **asked: object) -> dict[str, Any]:
    return await made(http, "keys", name="a key", principal_id=principal_id, **asked)


def using(app: App, key: str) -> httpx.AsyncClient:
    return apps.client(app, Caller(UUID(int=1), UUID(int=1), key))


async def revision(app: App, caller: Caller) -> int:
    tenant = await app.parts.database.work(tenant_scope(caller.tenant_id), directory.find_tenant)
    assert tenant is not None
    return tenant.permission_revision


async def test_a_principal_is_made_listed_and_looked_at(http: httpx.AsyncClient) -> None:
    ada = await made(http, "principals", name="ada", issuer=ISSUER, subject="ada@example.org")
    bot = await made(http, "principals", name="bot")

    listed = (await http.get("/v1/admin/principals")).json()["principals"]

    assert (ada["role"], ada["status"], ada["teams"]) == ("member", "active", [])
    assert (bot["issuer"], bot["subject"]) == (None, None)
    assert [one for one in listed if one["principal_id"] in (ada["principal_id"], bot["principal_id"])] == [ada, bot]
    assert (await http.get(f"/v1/admin/principals/{ada['principal_id']}")).json() == ada
    assert (await http.get(f"/v1/admin/principals/{uuid4()}")).status_code == 404


@pytest.mark.parametrize("kind", ["principals", "teams"])
async def test_lists_are_paged_and_their_tokens_serve_no_other(app: App, http: httpx.AsyncClient, kind: str) -> None:
    ids = [(await made(http, kind, name=f"number {n}"))[f"{kind[:-1]}_id"] for n in range(5)]
    stranger = await apps.new_tenant(app)

    seen, token = [], ""
    while True:
        page = (await http.get(f"/v1/admin/{kind}?page_size=2{token}")).json()
        seen += [one[f"{kind[:-1]}_id"] for one in page[kind]]
        if page["next_page_token"] is None:
            break
        token = f"&page_token={page['next_page_token']}"
        last = page["next_page_token"]

    assert [one for one in seen if one in ids] == ids
    assert len(seen) == len(set(seen))
    assert (await http.get(f"/v1/admin/keys?page_token={last}")).status_code == 422
    async with apps.client(app, stranger) as theirs:
        assert (await theirs.get(f"/v1/admin/{kind}?page_token={last}")).status_code == 422


async def test_memberships_are_made_once_listed_by_team_and_ended_once(http: httpx.AsyncClient) -> None:
    people = [(await made(http, "principals", name=f"p {n}"))["principal_id"] for n in range(3)]
    team, other = [(await made(http, "teams", name=name))["team_id"] for name in ("one", "other")]
    for principal_id in people:
        await made(http, "memberships", team_id=team, principal_id=principal_id)
    first = await made(http, "memberships", team_id=other, principal_id=people[0])
    again = await made(http, "memberships", team_id=other, principal_id=people[0])

    of_team = (await http.get(f"/v1/admin/memberships?team={team}&page_size=2")).json()
    rest = (await http.get(f"/v1/admin/memberships?team={team}&page_size=2&page_token={of_team['next_page_token']}")).json()
    ended = [(await http.delete(f"/v1/admin/memberships/{other}/{people[0]}")).status_code for _ in range(2)]

    assert again == first
    assert {one["principal_id"] for one in of_team["memberships"] + rest["memberships"]} == set(people)
    assert rest["next_page_token"] is None
    assert (await http.get(f"/v1/admin/memberships?page_token={of_team['next_page_token']}")).status_code == 422
    assert ended == [204, 404]
    assert {t["team_id"]: t["members"] for t in (await http.get("/v1/admin/teams")).json()["teams"]} == {team: 3, other: 0}
    assert (await http.get(f"/v1/admin/principals/{people[0]}")).json()["teams"] == [team]


async def test_T04_nothing_of_another_tenant_can_be_named_in_a_membership(app: App, http: httpx.AsyncClient) -> None:
    async with apps.client(app, await apps.new_tenant(app)) as stranger:
        theirs = await made(stranger, "principals", name="theirs")
        their_team = await made(stranger, "teams", name="theirs")
    mine, my_team = await made(http, "principals", name="mine"), await made(http, "teams", name="mine")

    for team_id, principal_id in (
        (my_team["team_id"], theirs["principal_id"]),
        (my_team["team_id"], str(uuid4())),
        (their_team["team_id"], mine["principal_id"]),
        (str(uuid4()), mine["principal_id"]),
    ):
        answer = await http.post("/v1/admin/memberships", json={"team_id": team_id, "principal_id": principal_id})
        assert answer.status_code == 404, answer.text
    assert (await http.get("/v1/admin/memberships")).json()["memberships"] == []
    listed = {team: await http.get(f"/v1/admin/memberships?team={team}") for team in (my_team["team_id"], their_team["team_id"])}
    unknown = await http.get(f"/v1/admin/memberships?team={uuid4()}")
    assert [answer.status_code for answer in listed.values()] == [200, 404]
    assert {**listed[their_team["team_id"]].json(), "instance": ""} == {**unknown.json(), "instance": ""}


async def test_T12_a_subject_is_one_principals_of_one_issuer(app: App, http: httpx.AsyncClient) -> None:
    ada = await made(http, "principals", name="ada", issuer=ISSUER, subject="7")
    other = await made(http, "principals", name="of another issuer", issuer="https://other.example.org/", subject="7")
    free = await made(http, "principals", name="free")

    taken = [
        await http.post("/v1/admin/principals", json={"name": "again", "issuer": ISSUER, "subject": "7"}),
        await http.patch(f"/v1/admin/principals/{free['principal_id']}", json={"issuer": ISSUER, "subject": "7"}),
        await http.patch(f"/v1/admin/principals/{other['principal_id']}", json={"issuer": ISSUER}),
    ]
    halves = [
        await http.post("/v1/admin/principals", json={"name": "half", "subject": "8"}),
        await http.patch(f"/v1/admin/principals/{free['principal_id']}", json={"issuer": ISSUER}),
        await http.patch(f"/v1/admin/principals/{ada['principal_id']}", json={"subject": None}),
    ]

    assert {answer.status_code for answer in taken + halves} == {422}
    gone = await http.patch(f"/v1/admin/principals/{ada['principal_id']}", json={"issuer": None, "subject": None})
    assert (gone.json()["issuer"], gone.json()["subject"]) == (None, None)
    passed_on = await http.patch(f"/v1/admin/principals/{free['principal_id']}", json={"issuer": ISSUER, "subject": "7"})
    assert passed_on.status_code == 200
    async with apps.client(app, await apps.new_tenant(app)) as stranger:
        assert (await made(stranger, "principals", name="ada", issuer=ISSUER, subject="7"))["subject"] == "7"


async def test_T03_nobody_makes_changes_or_ends_a_role_whose_rights_it_does_not_hold(app: App, http: httpx.AsyncClient) -> None:
    boss = await made(http, "principals", name="boss", role="operator")
    clerk = await made(http, "principals", name="clerk")
    narrow = await made(http, "keys", name="narrow", operations=sorted({"principals", "audit", *MEMBER}))

    async with using(app, narrow["key"]) as client:
        allowed = [
            await client.post("/v1/admin/principals", json={"name": "a member"}),
            await client.patch(f"/v1/admin/principals/{clerk['principal_id']}", json={"status": "inactive"}),
        ]
        refused = [
            await client.post("/v1/admin/principals", json={"name": "x", "role": "operator"}),
            await client.patch(f"/v1/admin/principals/{clerk['principal_id']}", json={"role": "operator"}),
            await client.patch(f"/v1/admin/principals/{boss['principal_id']}", json={"role": "member"}),
            await client.patch(f"/v1/admin/principals/{boss['principal_id']}", json={"status": "inactive"}),
            await client.post("/v1/admin/principals", json={"name": "x", "issuer": ISSUER, "subject": "x"}),
            await client.patch(f"/v1/admin/principals/{clerk['principal_id']}", json={"issuer": ISSUER, "subject": "x"}),
        ]

    assert [answer.status_code for answer in allowed] == [201, 200]
    assert {answer.status_code for answer in refused} == {403}
    stands = (await http.get(f"/v1/admin/principals/{boss['principal_id']}")).json()
    assert (stands["role"], stands["status"]) == ("operator", "active")


async def test_nobody_ends_its_own_rights_so_that_a_tenant_keeps_an_operator(http: httpx.AsyncClient, operator: Caller) -> None:
    for change in ({"role": "member"}, {"status": "inactive"}):
        assert (await http.patch(f"/v1/admin/principals/{operator.principal_id}", json=change)).status_code == 403
    assert (await http.patch(f"/v1/admin/principals/{operator.principal_id}", json={"name": "the boss"})).status_code == 200


async def test_a_role_is_the_most_that_its_keys_can_do_and_taking_it_away_counts_at_once(app: App, http: httpx.AsyncClient) -> None:
    boss = await made(http, "principals", name="boss", role="operator")
    key = await key_for(http, boss["principal_id"], operations=["scan", "keys", "read"])
    member = await made(http, "principals", name="member")

    async with using(app, key["key"]) as client:
        before = (await client.get("/v1/admin/keys")).status_code
        await http.patch(f"/v1/admin/principals/{boss['principal_id']}", json={"role": "member"})
        after = (await client.get("/v1/admin/keys")).status_code, (await client.get(f"/v1/manifests/{uuid4()}")).status_code
        await http.patch(f"/v1/admin/principals/{boss['principal_id']}", json={"role": "operator"})
        again = (await client.get("/v1/admin/keys")).status_code

    assert (before, after, again) == (200, (403, 404), 200)
    too_much = await http.post("/v1/admin/keys", json={"name": "x", "principal_id": member["principal_id"], "operations": ["scan"]})
    assert too_much.status_code == 422
    assert set((await key_for(http, member["principal_id"]))["operations"]) == MEMBER
    other = await made(http, "principals", name="another", role="operator")
    assert set((await key_for(http, other["principal_id"]))["operations"]) == OPERATOR


async def test_an_inactive_principal_is_refused_as_a_stranger_is_until_it_is_active_again(
    app: App, http: httpx.AsyncClient
) -> None:
    ada = await made(http, "principals", name="ada")
    key = await key_for(http, ada["principal_id"])

    async with using(app, key["key"]) as client:
        statuses = [(await client.get("/v1/sessions")).status_code]
        for status in ("inactive", "active"):
            await http.patch(f"/v1/admin/principals/{ada['principal_id']}", json={"status": status})
            statuses.append((await client.get("/v1/sessions")).status_code)

    assert statuses == [200, 401, 200]


async def test_every_change_raises_the_permission_revision_and_is_audited_without_names(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    revisions = [await revision(app, operator)]

    async def did(answer: httpx.Response) -> Any:
        assert answer.is_success, answer.text
        revisions.append(await revision(app, operator))
        return answer.json() if answer.content else None

    ada = await did(await http.post("/v1/admin/principals", json={"name": "Ada Secretname"}))
    team = await did(await http.post("/v1/admin/teams", json={"name": "Team Secretname"}))
    path, member = f"/v1/admin/principals/{ada['principal_id']}", f"{team['team_id']}/{ada['principal_id']}"
    await did(await http.post("/v1/admin/memberships", json={"team_id": team["team_id"], "principal_id": ada["principal_id"]}))
    await did(await http.patch(path, json={"role": "operator", "name": "Ada Othername"}))
    await did(await http.patch(path, json={"status": "inactive"}))
    await did(await http.patch(path, json={"issuer": ISSUER, "subject": "Secretname"}))
    await did(await http.delete(f"/v1/admin/memberships/{member}"))
    await did(await http.delete(f"/v1/admin/teams/{team['team_id']}"))
    before = await revision(app, operator)
    await http.patch(path, json={"status": "inactive"})

    rows = await app.parts.database.work(tenant_scope(operator.tenant_id), lambda tx: audit.page(tx, None, 100))
    assert revisions == sorted(set(revisions))
    assert await revision(app, operator) == before
    assert [(row.action, row.target_id) for row in rows] == [
        ("principal.create", ada["principal_id"]),
        ("team.create", team["team_id"]),
        ("membership.create", member),
        ("principal.rename", ada["principal_id"]),
        ("principal.role.operator", ada["principal_id"]),
        ("principal.deactivate", ada["principal_id"]),
        ("principal.subject", ada["principal_id"]),
        ("membership.delete", member),
        ("team.delete", team["team_id"]),
    ]
    assert {row.principal_id for row in rows} == {operator.principal_id}
    assert "Secretname" not in str(rows)


async def test_a_key_kept_to_some_sessions_administers_nobody(app: App, http: httpx.AsyncClient) -> None:
    kept = await made(http, "keys", name="kept", sessions=[str(uuid4())], operations=sorted(OPERATOR))

    async with using(app, kept["key"]) as client:
        answers = [
            await client.get("/v1/admin/principals"), await client.post("/v1/admin/principals", json={"name": "x"}),
            await client.get("/v1/admin/teams"), await client.post("/v1/admin/teams", json={"name": "x"}),
            await client.get("/v1/admin/memberships"), await client.delete(f"/v1/admin/memberships/{uuid4()}/{uuid4()}"),
        ]  # fmt: skip

    assert {answer.status_code for answer in answers} == {403}


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("principals", {"name": ""}),
        ("principals", {"name": "x", "role": "owner"}),
        ("principals", {"name": "x", "tenant_id": str(uuid4())}),
        ("principals", {"name": "x", "issuer": ISSUER, "subject": "nul \u0000"}),
        ("principals", {"name": "x", "issuer": "", "subject": "s"}),
        ("teams", {"name": "x" * 101}),
        ("teams", {"name": "x", "tenant": "y"}),
        ("memberships", {"team_id": "x", "principal_id": "y"}),
    ],
)
async def test_what_makes_no_sense_is_refused(http: httpx.AsyncClient, kind: str, asked: dict[str, object]) -> None:
    assert (await http.post(f"/v1/admin/{kind}", json=asked)).status_code == 422
