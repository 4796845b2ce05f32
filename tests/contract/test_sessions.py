"""Sessions over the routes: who may read changes at once, the index follows, and lists hold still."""

from __future__ import annotations

import asyncio
import base64
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.domain.scopes import PUBLIC, principal_key, team_key
from coatcheck.identity.operations import EVERYTHING, MEMBER
from coatcheck.identity.scopes import tenant_scope
from coatcheck.ops import faults
from coatcheck.store import sessions
from coatcheck.store.database import WorkerTransaction
from tests import apps
from tests.apps import Caller
from tests.contract.routes import everything_said, statuses
from tests.contract.working import job, settled
from tests.windows import request, window

QUERIES = ["alpha health failed", "service alpha worker heartbeat"]


async def compacted(http: httpx.AsyncClient, session: str, mark: str = "alpha", **more: object) -> dict[str, Any]:
    answer = await http.post("/v1/compactions", json=request(session, window(calls=2, filler=4, mark=mark), **more))
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def patched(http: httpx.AsyncClient, made: dict[str, Any], **change: object) -> dict[str, Any]:
    answer = await http.patch(f"/v1/sessions/{made['session_id']}", json=change)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def acls(app: App, caller: Caller, session_id: str) -> set[tuple[str, ...]]:
    """What the points of a session say of who may read them."""
    points = [p async for page in app.parts.index.scroll() for p in page if p.tenant_id == caller.tenant_id]
    return {tuple(sorted(point.acl)) for point in points if point.session_id == UUID(session_id)}


async def test_a_participant_reads_and_writes_at_once_and_a_former_one_nothing(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    made = await compacted(http, "s")
    sha = (await http.get(f"/v1/manifests/{made['manifest_id']}/entries")).json()["entries"][0]["sha256"]
    colleague = await apps.new_principal(app, operator.tenant_id, MEMBER)
    names = {"session_id": made["session_id"], "manifest_id": made["manifest_id"], "sha256": sha}
    async with apps.client(app, colleague) as theirs:
        before = await statuses(theirs, **names)

        joined = await patched(http, made, participants=[str(colleague.principal_id)])
        during = await statuses(theirs, **names)
        await settled(http)
        said = await everything_said(theirs, QUERIES)
        added = await compacted(theirs, made["session_id"], "beta")

        await patched(http, made, participants=[])
        after = await statuses(theirs, **names)
        silent = await everything_said(theirs, QUERIES)
        late = await theirs.post("/v1/compactions", json=request(made["session_id"], window(mark="gamma")))
        replay = await theirs.get(f"/v1/manifests/{added['manifest_id']}")

    assert joined["participants"] == [str(colleague.principal_id)]
    assert set(before.values()) == {404}
    assert {during.pop("patch")} == {403}
    assert set(during.values()) == {200}
    assert "/alpha/health" in said
    assert set(after.values()) == {404}
    assert "/alpha/health" not in silent
    assert (late.status_code, replay.status_code) == (404, 404)


async def test_a_name_means_the_callers_own_session_and_nobody_elses(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    """Whoever erases by a name must not meet a colleague's session of the same name, which it may read, be it the newer one."""
    own = await compacted(http, "notes")
    colleague = await apps.new_principal(app, operator.tenant_id, MEMBER)
    async with apps.client(app, colleague) as theirs:
        await compacted(theirs, "notes", "beta", visibility="public")
        await compacted(theirs, "plans", "beta", visibility="public")

        listed = (await http.get("/v1/sessions")).json()["sessions"]
        named = (await http.get("/v1/sessions", params={"name": "notes"})).json()
        elses = (await http.get("/v1/sessions", params={"name": "plans"})).json()
        refused = await http.get("/v1/sessions", params={"name": "a\nb"})

    assert [session["name"] for session in listed] == ["plans", "notes", "notes"]
    assert [session["session_id"] for session in named["sessions"]] == [own["session_id"]]
    assert elses == {"sessions": [], "next_page_token": None}
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/query/name")


async def test_narrowing_holds_while_the_index_still_says_otherwise(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s", visibility="public")
    colleague = await apps.new_principal(app, operator.tenant_id, MEMBER)
    async with apps.client(app, colleague) as theirs:
        assert "/alpha/health" in await everything_said(theirs, QUERIES)

        async with faults.held("after-claim"):
            await patched(http, made, visibility="personal")
            stale = await acls(app, operator, made["session_id"])
            said = await everything_said(theirs, QUERIES)
            own = await everything_said(http, QUERIES)

    assert PUBLIC in str(stale)
    assert "/alpha/health" not in said
    assert "/alpha/health" in own
    await settled(http)
    assert await acls(app, operator, made["session_id"]) == {(principal_key(operator.principal_id),)}


async def in_line(app: App, how_many: int) -> None:
    """Returns when so many changes wait for a session that somebody holds."""
    waiting = sa.text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    for _ in range(2_000):
        if await app.parts.database.directory(lambda tx: tx.connection.scalar(waiting)) == how_many:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{how_many} changes never stood in line")


@pytest.mark.parametrize("last", [{"visibility": "conversation"}, {"participants": []}], ids=["visibility", "participants"])
async def test_of_two_changes_at_once_neither_takes_the_others_back(
    app: App, operator: Caller, http: httpx.AsyncClient, last: dict[str, object]
) -> None:
    """What a change does not name is what stands at its turn, and not what stood when it was asked for."""
    colleague = await apps.new_principal(app, operator.tenant_id, MEMBER)
    made = await compacted(http, "s", visibility="public" if "participants" in last else "conversation")
    first: dict[str, object] = {"visibility": "conversation"} if "participants" in last else {"participants": []}
    if "visibility" in last:
        await patched(http, made, participants=[str(colleague.principal_id)])

    async def queued(tx: WorkerTransaction) -> list[asyncio.Task[dict[str, Any]]]:
        await sessions.lock(tx, UUID(made["session_id"]))
        changes = []
        for change in (first, last):
            changes.append(asyncio.create_task(patched(http, made, **change)))
            await in_line(app, len(changes))
        return changes

    both = [await change for change in await app.parts.database.work(tenant_scope(operator.tenant_id), queued)]

    assert (both[1]["visibility"], both[1]["participants"]) == ("conversation", [])
    async with apps.client(app, colleague) as theirs:
        assert (await theirs.get(f"/v1/sessions/{made['session_id']}")).status_code == 404


async def test_the_index_follows_to_the_last_of_several_changes(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s")
    colleague = await apps.new_principal(app, operator.tenant_id, MEMBER)
    changes: list[dict[str, object]] = [
        {"visibility": "public"}, {"visibility": "personal"}, {"visibility": "public"},
        {"visibility": "conversation", "participants": [str(colleague.principal_id)]},
    ]  # fmt: skip

    for change in changes:
        await patched(http, made, **change)
    await settled(http)

    mine, theirs = principal_key(operator.principal_id), principal_key(colleague.principal_id)
    assert await acls(app, operator, made["session_id"]) == {tuple(sorted((mine, theirs)))}
    assert (await job(http, "scan"))["findings_total"] == 0


async def test_public_needs_the_right_to_publish_and_a_team_its_membership(app: App, operator: Caller) -> None:
    team = uuid4()
    owner = await apps.new_principal(app, operator.tenant_id, MEMBER - {"publish"}, teams=(team,))
    mate = await apps.new_principal(app, operator.tenant_id, MEMBER)
    async with apps.client(app, owner) as http, apps.client(app, mate) as mates:
        made = await compacted(http, "s")
        path = f"/v1/sessions/{made['session_id']}"
        refused = [
            await http.patch(path, json={"visibility": "public"}),
            await http.patch(path, json={"visibility": f"team:{uuid4()}"}),
        ]
        bad = [
            await http.patch(path, json={"visibility": visibility}) for visibility in ("friends", "team:", "team:x", "", "PUBLIC")
        ]

        joined = await patched(http, made, visibility=f"team:{team}")

        assert [answer.status_code for answer in refused] == [403, 403]
        assert {answer.status_code for answer in bad} == {422}
        assert joined["visibility"] == f"team:{team}"
        assert (await mates.get(path)).status_code == 404
        assert (await http.get(path)).json()["visibility"] == f"team:{team}"
    async with apps.client(app, operator) as operators:
        await settled(operators)
    assert {team_key(team)} < {key for acl in await acls(app, owner, made["session_id"]) for key in acl}


@pytest.mark.parametrize("participants", [["x"], [str(uuid4())], "all", [None]])
async def test_participants_are_principals_of_the_tenant(http: httpx.AsyncClient, participants: object) -> None:
    made = await compacted(http, "s")

    answer = await http.patch(f"/v1/sessions/{made['session_id']}", json={"participants": participants})

    assert answer.status_code == 422
    assert (await http.get(f"/v1/sessions/{made['session_id']}")).json()["participants"] == []


async def test_a_change_of_nothing_changes_nothing(http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s")
    before = (await http.get(f"/v1/sessions/{made['session_id']}")).json()

    assert await patched(http, made) == before


async def pages(http: httpx.AsyncClient, size: int) -> list[list[str]]:
    """The names of the sessions, page by page."""
    found: list[list[str]] = []
    token: str | None = None
    while True:
        answer = await http.get("/v1/sessions", params={"page_size": size, **({"page_token": token} if token else {})})
        assert answer.status_code == 200, answer.text
        found.append([session["name"] for session in answer.json()["sessions"]])
        token = answer.json()["next_page_token"]
        if token is None:
            return found


async def test_lists_are_newest_first_and_complete_at_every_page_size(http: httpx.AsyncClient) -> None:
    names = [f"session {n}" for n in range(7)]
    for name in names:
        await compacted(http, name)

    for size in (1, 3, 7, 200):
        listed = await pages(http, size)
        assert [name for page in listed for name in page] == names[::-1]
        assert all(len(page) == size for page in listed[:-1])


async def test_a_list_under_way_is_not_moved_by_what_comes_and_goes(http: httpx.AsyncClient) -> None:
    made = [await compacted(http, f"session {n}") for n in range(5)]
    first = (await http.get("/v1/sessions", params={"page_size": 2})).json()

    await compacted(http, "newer")
    await http.delete(f"/v1/sessions/{made[3]['session_id']}")
    second = (await http.get("/v1/sessions", params={"page_size": 2, "page_token": first["next_page_token"]})).json()

    assert [session["name"] for session in first["sessions"]] == ["session 4", "session 3"]
    assert [session["name"] for session in second["sessions"]] == ["session 2", "session 1"]


async def test_an_entries_list_is_paged_in_the_windows_order(http: httpx.AsyncClient) -> None:
    made = await compacted(http, "s")
    path = f"/v1/manifests/{made['manifest_id']}/entries"
    whole = (await http.get(path, params={"page_size": 200})).json()["entries"]

    seen: list[int] = []
    token: str | None = None
    while True:
        page = (await http.get(path, params={"page_size": 2, **({"page_token": token} if token else {})})).json()
        seen += [entry["ordinal"] for entry in page["entries"]]
        token = page["next_page_token"]
        if token is None:
            break

    assert seen == [entry["ordinal"] for entry in whole] == list(range(len(whole)))


async def test_a_token_that_was_tampered_with_or_belongs_elsewhere_is_refused(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    for n in range(3):
        made = await compacted(http, f"session {n}")
    token = (await http.get("/v1/sessions", params={"page_size": 1})).json()["next_page_token"]
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[-1] ^= 1
    tampered = base64.urlsafe_b64encode(bytes(raw)).rstrip(b"=").decode()
    colleague = await apps.new_principal(app, operator.tenant_id, EVERYTHING)

    for bad in (tampered, token[:-2], token + "A", "x", "é", "A" * 2_000, "%00"):
        answer = await http.get("/v1/sessions", params={"page_size": 1, "page_token": bad})
        assert (answer.status_code, answer.json()["type"].rsplit(":", 1)[-1]) == (422, "invalid-request"), bad
    async with apps.client(app, colleague) as theirs:
        assert (await theirs.get("/v1/sessions", params={"page_token": token})).status_code == 422
    elsewhere = [f"/v1/manifests/{made['manifest_id']}/entries", "/v1/admin/keys"]
    assert {(await http.get(path, params={"page_token": token})).status_code for path in elsewhere} == {422}
    for size in ("0", "-1", "201", "many"):
        assert (await http.get("/v1/sessions", params={"page_size": size})).status_code == 422


async def test_two_changes_at_once_end_in_one_of_them_and_the_index_agrees(
    app: App, operator: Caller, http: httpx.AsyncClient
) -> None:
    made = await compacted(http, "s")

    await asyncio.gather(*(patched(http, made, visibility=v) for v in ("public", "personal", "public", "conversation")))
    await settled(http)

    visibility = (await http.get(f"/v1/sessions/{made['session_id']}")).json()["visibility"]
    expected = {PUBLIC, principal_key(operator.principal_id)} if visibility == "public" else {principal_key(operator.principal_id)}
    assert {key for acl in await acls(app, operator, made["session_id"]) for key in acl} == expected
    assert (await job(http, "scan"))["findings_total"] == 0
