"""What was taken away is gone with the next request, whatever the index still holds: memberships, teams, principals."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest_asyncio

from coatcheck.app.directory import StoreDirectory
from coatcheck.domain.scopes import PUBLIC, principal_key, team_key
from coatcheck.identity.authenticate import Authenticator
from coatcheck.identity.scopes import tenant_scope
from tests import apps
from tests.api.operations import NOTHING, Ids
from tests.apps import Caller
from tests.contract.routes import everything_said, statuses
from tests.contract.working import job
from tests.isolation.test_visibility import READS, place, said
from tests.isolation.town import Person, Town, left_by, new_town
from tests.windows import request, window


@pytest_asyncio.fixture(loop_scope="package")
async def town(app: Any) -> AsyncIterator[Town]:
    """One for each test: teams and memberships change."""
    async with new_town(app) as made:
        yield made


async def admin(town: Town, method: str, path: str, **asked: object) -> dict[str, Any]:
    answer = await town.operator.http.request(method, f"/v1/admin/{path}", json=asked or None)
    assert answer.is_success, answer.text
    body: dict[str, Any] = answer.json() if answer.content else {}
    return body


async def settled(town: Town) -> None:
    """The index has followed everything so far."""
    await town.app.use_cases.reconciler.drain_tenant(town.alice.tenant_id)


async def index_says(town: Town, ids: Ids, *acl: str) -> None:
    """The index still holds this acl, as if its outbox had not been worked on."""
    await settled(town)
    await town.app.parts.index.set_acl(tenant_scope(town.alice.tenant_id), UUID(str(ids.session)), acl)


async def reads_all(person: Person, ids: Ids, mark: str) -> None:
    found = await statuses(person.http, session_id=str(ids.session), manifest_id=str(ids.manifest), sha256=ids.sha256)
    found.pop("patch")
    assert set(found.values()) == {200}, found
    assert mark in await everything_said(person.http, [f"{mark} health failed"])


async def sees_nothing(person: Person, ids: Ids, mark: str) -> None:
    """Over every route and tool, to the word as if there were nothing."""
    found = await statuses(person.http, session_id=str(ids.session), manifest_id=str(ids.manifest), sha256=ids.sha256)
    assert set(found.values()) == {404}, found
    for path in READS:
        there = await person.http.get(place(path, ids))
        assert said(there) == said(await person.http.get(place(path, NOTHING))), path
    assert mark not in await everything_said(person.http, [f"{mark} health failed", "pool exhausted"])
    listed = (await person.http.get("/v1/sessions?page_size=200")).json()["sessions"]
    assert str(ids.session) not in {session["session_id"] for session in listed}


async def writes(person: Person, ids: Ids, mark: str) -> int:
    return (await person.http.post("/v1/compactions", json=request(str(ids.session), window(mark=mark)))).status_code


async def test_a_member_that_was_taken_out_sees_nothing_with_its_next_request(town: Town) -> None:
    ids = await left_by(town.alice, "of-the-team", visibility=f"team:{town.team_id}")
    await reads_all(town.carol, ids, "of-the-team")

    await admin(town, "DELETE", f"memberships/{town.team_id}/{town.carol.principal_id}")

    await sees_nothing(town.carol, ids, "of-the-team")
    assert await writes(town.carol, ids, "late") == 404
    await reads_all(town.alice, ids, "of-the-team")


async def test_a_member_that_was_taken_in_reads_with_its_next_request(town: Town) -> None:
    ids = await left_by(town.alice, "of-the-team", visibility=f"team:{town.team_id}")
    await sees_nothing(town.bob, ids, "of-the-team")

    await admin(town, "POST", "memberships", team_id=str(town.team_id), principal_id=str(town.bob.principal_id))

    await reads_all(town.bob, ids, "of-the-team")
    assert await writes(town.bob, ids, "by-bob") == 201


async def test_the_owner_that_left_its_team_keeps_its_session_and_may_not_share_it_anew(town: Town) -> None:
    ids = await left_by(town.alice, "mine", visibility=f"team:{town.team_id}")

    await admin(town, "DELETE", f"memberships/{town.team_id}/{town.alice.principal_id}")

    await reads_all(town.alice, ids, "mine")
    path = f"/v1/sessions/{ids.session}"
    assert (await town.alice.http.patch(path, json={"visibility": "personal"})).status_code == 200
    assert (await town.alice.http.patch(path, json={"visibility": f"team:{town.team_id}"})).status_code == 403


async def test_a_narrowed_session_is_gone_while_the_index_still_holds_the_wider_acl(town: Town) -> None:
    owner = principal_key(town.alice.principal_id)
    for visibility, reader, key in (("public", town.bob, PUBLIC), (f"team:{town.team_id}", town.carol, team_key(town.team_id))):
        mark = f"narrowed-{visibility.split(':')[0]}"
        ids = await left_by(town.alice, mark, visibility=visibility)
        await reads_all(reader, ids, mark)

        await town.alice.http.patch(f"/v1/sessions/{ids.session}", json={"visibility": "personal"})
        await index_says(town, ids, owner, key)

        await sees_nothing(reader, ids, mark)
        await reads_all(town.alice, ids, mark)


async def test_participants_read_and_write_from_when_they_are_named_until_they_are_not(town: Town) -> None:
    ids = await left_by(town.alice, "shared")
    path, both = f"/v1/sessions/{ids.session}", [town.bob.principal_id, town.carol.principal_id]
    await sees_nothing(town.bob, ids, "shared")

    await town.alice.http.patch(path, json={"participants": [str(one) for one in both]})
    await settled(town)
    await reads_all(town.bob, ids, "shared")
    assert await writes(town.bob, ids, "by-bob") == 201
    await town.alice.http.patch(path, json={"participants": [str(town.carol.principal_id)]})
    await index_says(town, ids, *(principal_key(one) for one in (town.alice.principal_id, *both)))

    await sees_nothing(town.bob, ids, "shared")
    assert await writes(town.bob, ids, "late") == 404
    await reads_all(town.carol, ids, "shared")


async def test_participants_count_for_a_conversation_alone(town: Town) -> None:
    ids = await left_by(town.alice, "personal", visibility="personal")
    path = f"/v1/sessions/{ids.session}"

    named = await town.alice.http.patch(path, json={"participants": [str(town.bob.principal_id)]})

    assert named.status_code == 200
    await sees_nothing(town.bob, ids, "personal")
    await town.alice.http.patch(path, json={"visibility": "conversation"})
    await settled(town)
    await reads_all(town.bob, ids, "personal")


async def test_with_its_team_a_session_becomes_its_owners_alone(town: Town) -> None:
    ids = await left_by(town.alice, "orphaned", visibility=f"team:{town.team_id}")
    await reads_all(town.carol, ids, "orphaned")

    await admin(town, "DELETE", f"teams/{town.team_id}")

    await sees_nothing(town.carol, ids, "orphaned")
    await reads_all(town.alice, ids, "orphaned")
    session = (await town.alice.http.get(f"/v1/sessions/{ids.session}")).json()
    assert (session["visibility"], session["owner_id"]) == ("personal", str(town.alice.principal_id))
    assert (await town.alice.http.post("/v1/compactions", json={**_asked(town), "session": "new"})).status_code == 403
    await settled(town)
    job = await _scanned(town)
    assert job["findings"] == []


async def test_a_team_of_the_same_name_has_nothing_of_the_one_before(town: Town) -> None:
    old = (await admin(town, "POST", "teams", name="night shift"))["team_id"]
    await admin(town, "POST", "memberships", team_id=old, principal_id=str(town.alice.principal_id))
    ids = await left_by(town.alice, "before", visibility=f"team:{old}")
    await admin(town, "DELETE", f"teams/{old}")

    new = (await admin(town, "POST", "teams", name="night shift"))["team_id"]
    await admin(town, "POST", "memberships", team_id=new, principal_id=str(town.bob.principal_id))

    await sees_nothing(town.bob, ids, "before")


async def test_a_deactivated_principal_is_refused_everywhere_and_what_it_shared_stays(town: Town) -> None:
    ids = await left_by(town.alice, "left-behind", visibility=f"team:{town.team_id}")

    await admin(town, "PATCH", f"principals/{town.alice.principal_id}", status="inactive")

    nowhere = said(await httpx_of(town, Caller(town.alice.tenant_id, town.alice.principal_id, "nonsense")).get("/v1/nowhere"))
    for path in READS:
        assert said(await town.alice.http.get(place(path, ids))) == nowhere
    assert said(await town.alice.http.post("/v1/recall", json={"query": "left-behind"})) == nowhere
    await reads_all(town.carol, ids, "left-behind")
    await admin(town, "PATCH", f"principals/{town.alice.principal_id}", status="active")
    await reads_all(town.alice, ids, "left-behind")


async def test_an_export_that_runs_when_its_reader_is_taken_out_gives_no_more(town: Town) -> None:
    """The rows are asked for as they are needed; each time the session's own acl answers."""
    ids = await left_by(town.alice, "exported", visibility="public")
    for number in range(3):
        assert await writes(town.alice, ids, f"more-{number}") == 201
    context = await _context_of(town, town.bob)
    lines = await town.app.use_cases.services.export_session(context, UUID(str(ids.session)))
    first = [await anext(lines), await anext(lines)]

    await town.alice.http.patch(f"/v1/sessions/{ids.session}", json={"visibility": "personal"})

    assert len(first) == 2
    rest = [json.loads(line) async for line in lines]
    assert [(line["type"], line["problem"]) for line in rest] == [("error", "not-found")]


def httpx_of(town: Town, caller: Caller) -> httpx.AsyncClient:
    return apps.client(town.app, caller)


def _asked(town: Town) -> dict[str, object]:
    return request("new", visibility=f"team:{town.team_id}")


async def _scanned(town: Town) -> dict[str, Any]:
    return await job(town.operator.http, "scan", index=True)


async def _context_of(town: Town, person: Person) -> Any:
    parts = town.app.parts
    authenticator = Authenticator(StoreDirectory(parts.database), parts.keyring, parts.clock)
    return await authenticator.authenticate(f"Bearer {person.caller.key}")
