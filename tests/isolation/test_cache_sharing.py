"""Answers for a team or a tenant: published on purpose, resting on nothing that any of its readers may not read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio

from coatcheck.identity.operations import EVERYTHING
from tests.apps import client, new_principal
from tests.caching import circumstances, lookup, store, why
from tests.isolation.town import Town
from tests.windows import request, window

NOTHING = {"session": "", "sources": []}


@pytest_asyncio.fixture(loop_scope="package")
async def publisher(town: Town) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody of Alice's and Carol's team who may publish answers."""
    caller = await new_principal(town.app, town.alice.tenant_id, EVERYTHING, teams=(town.team_id,))
    async with client(town.app, caller) as http:
        yield http


def in_team(town: Town, **more: object) -> dict[str, object]:
    return {**NOTHING, "sharing": f"team:{town.team_id}", **more}


async def test_a_team_reuses_what_is_published_to_it_and_nobody_else_does(town: Town, publisher: httpx.AsyncClient) -> None:
    kept = await store(publisher, "for the team", **in_team(town))

    members = [await lookup(person.http, **in_team(town)) for person in (town.alice, town.carol)]
    outsiders = [
        await person.http.post("/v1/cache/lookup", json=circumstances(**in_team(town)))
        for person in (town.bob, town.operator, town.dave)
    ]
    private = await lookup(town.alice.http, **NOTHING)

    assert kept["stored"]
    assert [one["answer"] for one in members] == ["for the team"] * 2
    assert members[0]["provenance"]["sharing"] == f"team:{town.team_id}"
    assert [one.status_code for one in outsiders] == [403] * 3
    assert why(private) == "ineligible:scope"


async def test_a_tenant_reuses_what_is_published_to_it_and_no_other_tenant_does(town: Town, publisher: httpx.AsyncClient) -> None:
    shared = {**NOTHING, "sharing": "tenant"}
    await store(publisher, "for all", **shared)

    found = [await lookup(person.http, **shared) for person in (town.alice, town.bob, town.operator)]
    foreign = await lookup(town.dave.http, **shared)

    assert [one["answer"] for one in found] == ["for all"] * 3
    assert why(foreign) == "ineligible:scope"


async def test_a_member_who_may_not_publish_changes_nothing_for_the_others(town: Town, publisher: httpx.AsyncClient) -> None:
    await store(publisher, "published", **in_team(town))
    scope = (await lookup(town.alice.http, **in_team(town)))["scope"]

    refused = await town.alice.http.post(
        "/v1/cache/store", json={**circumstances(**in_team(town)), "answer": "poison", "scope": scope}
    )

    assert refused.status_code == 403
    assert (await lookup(town.carol.http, **in_team(town)))["answer"] == "published"


async def test_a_team_that_the_caller_is_not_in_is_answered_as_one_that_is_not_there(town: Town) -> None:
    def said(answer: httpx.Response) -> dict[str, object]:
        return {**answer.json(), "instance": ""}

    for path in ("lookup", "store"):
        more = {"answer": "a"} if path == "store" else {}
        bodies = [{**circumstances(**{**NOTHING, "sharing": f"team:{team}"}), **more} for team in (town.team_id, uuid4())]
        foreign, unknown = [await town.bob.http.post(f"/v1/cache/{path}", json=body) for body in bodies]
        assert said(foreign) == said(unknown)
        assert foreign.status_code == 403


async def test_what_not_every_reader_may_read_is_shared_with_none(town: Town, publisher: httpx.AsyncClient) -> None:
    """A caller's word on sources and conversations is good for its own entries alone."""
    mine = (await publisher.post("/v1/compactions", json=_window("mine alone"))).json()
    ours = (await publisher.post("/v1/compactions", json=_window("ours", visibility=f"team:{town.team_id}"))).json()

    def source(body: dict[str, str]) -> list[dict[str, str]]:
        return [{"id": body["session_id"], "revision": "1"}]

    external = await lookup(publisher, **in_team(town, sources=[{"id": "contract-17", "revision": "3"}]))
    private_source = await lookup(publisher, **in_team(town, sources=source(mine)))
    private_session = await lookup(publisher, **in_team(town, session="mine alone"))
    unknown_session = await lookup(publisher, **in_team(town, session="not kept here"))
    team_source = await store(publisher, "of ours", **in_team(town, sources=source(ours), session="ours"))
    for_all = await lookup(publisher, **{**NOTHING, "sharing": "tenant", "sources": source(ours)})

    assert [why(one) for one in (external, private_source)] == ["bypassed:sources"] * 2
    assert [why(one) for one in (private_session, unknown_session)] == ["bypassed:conversation"] * 2
    assert team_source["stored"]
    assert why(for_all) == "bypassed:sources"
    found = await lookup(town.alice.http, **in_team(town, sources=source(ours), session=ours["session_id"]))
    assert found["answer"] == "of ours"


async def test_what_was_published_is_nobodys_once_its_publisher_counts_no_more(town: Town) -> None:
    caller = await new_principal(town.app, town.alice.tenant_id, EVERYTHING, teams=(town.team_id,))
    async with client(town.app, caller) as http:
        await store(http, "of somebody who left", **in_team(town, prompt="leaving"))
        before = await lookup(town.alice.http, **in_team(town, prompt="leaving"))

        await town.operator.http.patch(f"/v1/admin/principals/{caller.principal_id}", json={"status": "inactive"})
        after = await lookup(town.alice.http, **in_team(town, prompt="leaving"))
        own = await http.post("/v1/cache/lookup", json=circumstances(**in_team(town, prompt="leaving")))

    assert before["answer"] == "of somebody who left"
    assert why(after) == "ineligible:permission"
    assert own.status_code == 401


async def test_a_narrowed_session_takes_the_teams_answers_along(town: Town, publisher: httpx.AsyncClient) -> None:
    ours = (await publisher.post("/v1/compactions", json=_window("soon mine", visibility=f"team:{town.team_id}"))).json()
    body = in_team(town, session=ours["session_id"])
    await store(publisher, "of ours", **body)
    before = await lookup(town.alice.http, **body)

    await publisher.patch(f"/v1/sessions/{ours['session_id']}", json={"visibility": "personal"})
    after = await town.alice.http.post("/v1/cache/lookup", json=circumstances(**body))

    assert before["answer"] == "of ours"
    assert after.status_code == 404
    assert why(await lookup(publisher, **body)) == "bypassed:conversation"


@pytest.mark.parametrize("sharing", ["", "*", "public", "team:", "team:*", f"team:{UUID(int=0)}", "principal:x", "Tenant", "all"])
async def test_a_sharing_scope_that_is_none_is_refused(town: Town, sharing: str) -> None:
    answer = await town.alice.http.post("/v1/cache/lookup", json=circumstances(sharing=sharing))

    assert answer.status_code in (403, 422)


def _window(session: str, **more: object) -> dict[str, object]:
    return request(session, window(mark=session), **more)
