"""Who reads and who writes which session: five principals of two tenants against each visibility, over the routes.

Whoever may not read is answered, to the word, as if there were nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.api.operations import NOTHING, UNKNOWN, Ids
from tests.isolation.town import Town, left_by
from tests.windows import request, window

VISIBILITIES = ("conversation", "shared", "personal", "team", "public")

READERS = {
    "conversation": {"alice"},
    "shared": {"alice", "bob"},
    "personal": {"alice"},
    "team": {"alice", "carol"},
    "public": {"alice", "bob", "carol", "operator"},
}
WRITERS = {**READERS, "public": {"alice"}}

NAMES = ("alice", "bob", "carol", "operator", "dave")
CELLS = [(visibility, name) for visibility in VISIBILITIES for name in NAMES]

READS = (
    "/v1/manifests/{manifest}",
    "/v1/manifests/{manifest}/entries?text=true",
    "/v1/manifests/{manifest}/window",
    "/v1/segments/{sha256}",
    "/v1/segments/{prefix}",
    "/v1/sessions/{session}",
    "/v1/sessions/{session}/export",
)


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def kept(town: Town) -> AsyncIterator[dict[str, Ids]]:
    """Alice's sessions, one of each visibility."""
    asked = {"team": f"team:{town.team_id}", "shared": "conversation"}
    made = {v: await left_by(town.alice, f"mark-{v}", visibility=asked.get(v, v)) for v in VISIBILITIES}
    shared = await town.alice.http.patch(
        f"/v1/sessions/{made['shared'].session}", json={"participants": [str(town.bob.principal_id)]}
    )
    assert shared.status_code == 200
    await town.app.use_cases.reconciler.drain_tenant(town.alice.tenant_id)  # the index follows a wider acl by outbox
    yield made


def place(path: str, ids: Ids) -> str:
    return path.format(manifest=ids.manifest, session=ids.session, sha256=ids.sha256, prefix=ids.sha256[:12])


def said(answer: httpx.Response) -> tuple[int, dict[str, Any], set[str]]:
    """All of a refusal but what names the one request."""
    body = answer.json()
    assert body.pop("instance").startswith("urn:uuid:")
    return answer.status_code, body, set(answer.headers)


@pytest.mark.parametrize(("visibility", "name"), CELLS)
async def test_who_may_read_reads_all_and_everybody_else_as_if_there_were_nothing(
    town: Town, kept: dict[str, Ids], visibility: str, name: str
) -> None:
    person = town.everybody[name]

    for path in READS:
        there = await person.http.get(place(path, kept[visibility]))
        nowhere = await person.http.get(place(path, NOTHING))
        if name in READERS[visibility]:
            assert there.status_code == 200, (path, there.text)
        else:
            assert said(there) == said(nowhere), path
            assert there.status_code == 404


@pytest.mark.parametrize(("visibility", "name"), CELLS)
async def test_recall_reaches_what_may_be_read_and_nothing_else(
    town: Town, kept: dict[str, Ids], visibility: str, name: str
) -> None:
    person, ids, mark = town.everybody[name], kept[visibility], f"mark-{visibility}"

    everywhere = await person.recall(f"{mark} health failed", top_k=50)
    there = await person.http.post("/v1/recall", json={"query": mark, "session": str(ids.session)})
    nowhere = await person.http.post("/v1/recall", json={"query": mark, "session": str(UNKNOWN)})

    if name in READERS[visibility]:
        assert any(mark in hit["text"] for hit in everywhere)
        assert any(mark in hit["text"] for hit in there.json()["hits"])
    else:
        assert not any(mark in hit["text"] or hit["session_id"] == str(ids.session) for hit in everywhere)
        assert said(there) == said(nowhere)


@pytest.mark.parametrize("name", NAMES)
async def test_lists_hold_what_may_be_read_page_after_page(town: Town, kept: dict[str, Ids], name: str) -> None:
    person, seen, token = town.everybody[name], set[str](), ""

    while True:
        page = (await person.http.get(f"/v1/sessions?page_size=1{token}")).json()
        seen |= {session["session_id"] for session in page["sessions"]}
        if page["next_page_token"] is None:
            break
        token = f"&page_token={page['next_page_token']}"

    readable = {str(kept[visibility].session) for visibility in VISIBILITIES if name in READERS[visibility]}
    assert {str(ids.session) for ids in kept.values()} & seen == readable


@pytest.mark.parametrize(("visibility", "name"), CELLS)
async def test_who_may_write_adds_a_window_and_who_may_only_read_is_forbidden_to(
    town: Town, kept: dict[str, Ids], visibility: str, name: str
) -> None:
    person, session = town.everybody[name], str(kept[visibility].session)
    body = window(mark=f"{visibility}-by-{name}")

    there = await person.http.post("/v1/compactions", json=request(session, body))
    nowhere = await person.http.post("/v1/compactions", json=request(str(UNKNOWN), body))

    if name in WRITERS[visibility]:
        assert there.status_code == 201
    elif name in READERS[visibility]:
        assert there.status_code == 403
    else:
        assert said(there) == said(nowhere)


@pytest.mark.parametrize(("visibility", "name"), [cell for cell in CELLS if cell[1] not in ("alice", "operator")])
async def test_who_is_neither_owner_nor_operator_changes_and_erases_nothing(
    town: Town, kept: dict[str, Ids], visibility: str, name: str
) -> None:
    person, ids = town.everybody[name], kept[visibility]

    for method, path, body in (
        ("PATCH", "/v1/sessions/{session}", {"visibility": "public"}),
        ("PATCH", "/v1/sessions/{session}", {"participants": [str(person.principal_id)]}),
        ("DELETE", "/v1/sessions/{session}", None),
        ("DELETE", "/v1/manifests/{manifest}", None),
    ):
        there = await person.http.request(method, place(path, ids), json=body)
        nowhere = await person.http.request(method, place(path, NOTHING), json=body)
        if name in READERS[visibility]:
            assert there.status_code == 403
        else:
            assert said(there) == said(nowhere)

    assert (await town.alice.http.get(f"/v1/manifests/{ids.manifest}")).status_code == 200


async def test_the_operator_changes_and_erases_what_it_may_not_read_and_is_told_so(town: Town) -> None:
    first, second = await left_by(town.bob, "of-bob"), await left_by(town.bob, "of-bob-too")

    narrowed = await town.operator.http.patch(f"/v1/sessions/{first.session}", json={"visibility": "personal"})
    one_run = await town.operator.http.delete(f"/v1/manifests/{first.manifest}")
    all_of_it = await town.operator.http.delete(f"/v1/sessions/{second.session}")

    assert (narrowed.status_code, narrowed.json()["visibility"]) == (200, "personal")
    assert (one_run.status_code, all_of_it.status_code) == (204, 204)
    for path in (f"/v1/manifests/{first.manifest}", f"/v1/sessions/{second.session}"):
        assert (await town.bob.http.get(path)).status_code == 410
        assert (await town.operator.http.get(path)).status_code == 404


async def test_the_operator_of_another_tenant_changes_and_erases_nothing(town: Town) -> None:
    ids = await left_by(town.bob, "not-daves")

    for method, path in (
        ("PATCH", "/v1/sessions/{session}"),
        ("DELETE", "/v1/sessions/{session}"),
        ("DELETE", "/v1/manifests/{manifest}"),
    ):
        body = {"visibility": "public"} if method == "PATCH" else None
        there = await town.dave.http.request(method, place(path, ids), json=body)
        nowhere = await town.dave.http.request(method, place(path, NOTHING), json=body)
        assert said(there) == said(nowhere)
    assert (await town.bob.http.get(f"/v1/sessions/{ids.session}")).json()["visibility"] == "conversation"


async def test_narrowing_takes_reading_away_at_once_from_every_route_and_from_recall(town: Town) -> None:
    ids = await left_by(town.alice, "narrowed", visibility="public")
    assert await town.bob.recall("narrowed health", str(ids.session))

    await town.alice.http.patch(f"/v1/sessions/{ids.session}", json={"visibility": "personal"})

    for path in READS:
        assert (await town.bob.http.get(place(path, ids))).status_code == 404
    assert not any(hit["session_id"] == str(ids.session) for hit in await town.bob.recall("narrowed health", top_k=50))
    assert await town.alice.recall("narrowed health", str(ids.session))


async def test_a_participant_of_another_tenant_is_no_more_known_than_one_that_does_not_exist(town: Town) -> None:
    ids = await left_by(town.alice, "inviting")

    foreign, unknown = [
        await town.alice.http.patch(f"/v1/sessions/{ids.session}", json={"participants": [str(principal)]})
        for principal in (town.dave.principal_id, UNKNOWN)
    ]

    assert said(foreign) == said(unknown)
    assert foreign.status_code == 422


async def test_only_members_name_their_team_and_a_foreign_team_is_as_an_unknown_one(town: Town) -> None:
    answers = [
        await person.http.post("/v1/compactions", json=request("of a team", visibility=f"team:{team_id}"))
        for person, team_id in ((town.bob, town.team_id), (town.bob, UNKNOWN), (town.dave, town.team_id), (town.dave, UNKNOWN))
    ]

    assert len({str(said(answer)) for answer in answers}) == 1
    assert answers[0].status_code == 403


async def test_erased_is_said_to_those_who_could_read_it_and_to_nobody_else(town: Town) -> None:
    ids = await left_by(town.alice, "gone", visibility=f"team:{town.team_id}")
    assert (await town.alice.http.delete(f"/v1/sessions/{ids.session}")).status_code == 204

    for person in town.everybody.values():
        for path in ("/v1/sessions/{session}", "/v1/manifests/{manifest}", "/v1/segments/{sha256}"):
            answer = await person.http.get(place(path, ids))
            if person.name in READERS["team"]:
                assert answer.status_code == 410, path
            else:
                assert said(answer) == said(await person.http.get(place(path, NOTHING)))


async def test_a_key_kept_to_one_session_is_not_told_that_another_was_erased(town: Town) -> None:
    gone, kept_to = await left_by(town.bob, "gone-too"), await left_by(town.bob, "kept-to")
    made = await town.operator.http.post(
        "/v1/admin/keys",
        json={"name": "narrow", "principal_id": str(town.bob.principal_id), "operations": ["read", "erase", "sessions"],
              "sessions": [str(kept_to.session)]},
    )  # fmt: skip
    narrow = {"Authorization": f"Bearer {made.json()['key']}"}
    assert (await town.bob.http.delete(f"/v1/sessions/{gone.session}")).status_code == 204

    for method in ("GET", "DELETE"):
        for path in ("/v1/sessions/{session}", "/v1/manifests/{manifest}"):
            there = await town.bob.http.request(method, place(path, gone), headers=narrow)
            nowhere = await town.bob.http.request(method, place(path, NOTHING), headers=narrow)
            assert said(there) == said(nowhere), (method, path)
