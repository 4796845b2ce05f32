"""Nobody else's: what another principal or tenant cannot read, what a reader cannot write, what is erased for everybody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest

from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.errors import CoatcheckError
from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.runs import Run
from coatcheck.domain.scopes import Scope, team_key
from coatcheck.domain.segments import Blob, Reduction
from coatcheck.domain.sessions import Session
from coatcheck.store import entries, outbox, runs, segments, sessions, tombstones
from coatcheck.store.database import AnyTransaction, Database, WriteTransaction
from tests.store.made import entries_of, run_of, segment_of, session_of, store_run, store_session
from tests.tenants import EPOCH, Tenancy

TEXT = "the canary in the window"
SHA = sha256_of(TEXT)
REDUCED = "canary, window"
BLOB = Blob.of("aGVsbG8=", "image/png")


@dataclass(frozen=True)
class Kept:
    """A session of the owner's with one of everything in it."""

    owner: Scope
    session: Session
    run: Run


async def keep(database: Database, owner: Scope, **options: object) -> Kept:
    session = await store_session(database, owner, **options)
    first, second = entries_of([TEXT, TEXT])
    window = [first, replace(second, ordinal=1, message_index=1, segment_sha256=None, blob_sha256=BLOB.sha256)]
    run = run_of(session)

    async def work(tx: WriteTransaction) -> None:
        await segments.insert(tx, session.session_id, [segment_of(TEXT)])
        reduction = Reduction(SHA, REDUCED.encode(), sha256_of(REDUCED), "reducer-1", {"margin": 0.9})
        await segments.insert_reductions(tx, session.session_id, [reduction])
        await segments.insert_blobs(tx, session.session_id, [BLOB])
        assert await runs.insert(tx, run)
        await entries.insert(tx, session.session_id, run.manifest_id, window)

    await database.write(owner, work)
    return Kept(owner, session, run)


READS: dict[str, Callable[[AnyTransaction, Kept], Awaitable[object]]] = {
    "session": lambda tx, kept: sessions.find(tx, kept.session.session_id),
    "session by name": lambda tx, kept: sessions.find_by_name(tx, kept.owner.principal_id, kept.session.name),
    "sessions": lambda tx, kept: sessions.page(tx, None, 10),
    "summary": lambda tx, kept: sessions.summary(tx, kept.session.session_id),
    "run": lambda tx, kept: runs.find(tx, kept.run.manifest_id),
    "run by request": lambda tx, kept: runs.find_by_request(
        tx, kept.session.session_id, kept.owner.principal_id, kept.run.idempotency_key
    ),
    "runs": lambda tx, kept: runs.page(tx, kept.session.session_id, None, 10),
    "latest": lambda tx, kept: runs.latest(tx, kept.session.session_id),
    "handoffs": lambda tx, kept: runs.handoffs_by_sha(tx, kept.session.session_id, [kept.run.handoff.sha256]),
    "segment": lambda tx, kept: segments.find(tx, kept.session.session_id, [SHA]),
    "segment by prefix": lambda tx, kept: segments.by_prefix(tx, SHA[:12]),
    "blob": lambda tx, kept: segments.blob_texts(tx, kept.session.session_id, [BLOB.sha256]),
    "entries": lambda tx, kept: entries.all(tx, kept.run.manifest_id),
    "newest entry": lambda tx, kept: entries.newest_for(tx, [(kept.session.session_id, SHA)]),
    "segments of a run": lambda tx, kept: entries.segments_of(tx, kept.run.manifest_id),
}


async def seen(database: Database, scope: Scope, kept: Kept) -> set[str]:
    """The names of the reads that give this scope anything."""
    found = set()
    for name, read in READS.items():
        if await database.read(scope, lambda tx, read=read: read(tx, kept)):  # type: ignore[misc]
            found.add(name)
    return found


async def test_T11_the_owner_reads_everything_and_everybody_else_nothing(
    database: Database, tenant: Tenancy, other_tenant: Tenancy
) -> None:
    owner, stranger = await tenant.principal(), await tenant.principal()
    kept = await keep(database, owner)
    foreign = Scope(other_tenant.tenant_id, owner.principal_id, owner.acl)

    assert await seen(database, owner, kept) == set(READS)
    assert await seen(database, stranger, kept) == set()
    assert await seen(database, foreign, kept) == set()


async def test_T18_a_worker_of_another_tenant_sees_nothing(database: Database, tenant: Tenancy, other_tenant: Tenancy) -> None:
    kept = await keep(database, await tenant.principal())

    for name, read in READS.items():
        here = await database.work(tenant.scope, lambda tx, read=read: read(tx, kept))  # type: ignore[misc]
        there = await database.work(other_tenant.scope, lambda tx, read=read: read(tx, kept))  # type: ignore[misc]
        assert (bool(here), bool(there)) == (True, False), name


async def test_participants_members_and_the_public_read_what_was_opened_to_them(database: Database, tenant: Tenancy) -> None:
    team = uuid4()
    owner, participant = await tenant.principal(team), await tenant.principal()
    member, stranger = await tenant.principal(team), await tenant.principal()

    shared = await keep(database, owner, participants=[participant.principal_id])
    of_team = await keep(database, owner, visibility=f"team:{team}")
    public = await keep(database, owner, visibility="public")

    everything = set(READS)
    assert await seen(database, participant, shared) == everything
    assert await seen(database, member, of_team) == everything
    assert await seen(database, stranger, public) == everything
    assert "session" not in await seen(database, member, shared)
    assert "session" not in await seen(database, stranger, of_team)


async def test_a_reader_writes_nothing_to_a_session_it_may_only_read(database: Database, tenant: Tenancy) -> None:
    owner, reader = await tenant.principal(), await tenant.principal()
    kept = await keep(database, owner, visibility="public")
    session_id, manifest_id = kept.session.session_id, kept.run.manifest_id
    own = await keep(database, reader)
    reduction = Reduction(SHA, b"short", sha256_of("short"), "reducer-2", {})
    my_run = replace(run_of(kept.session), principal_id=reader.principal_id)
    entry = replace(entries_of([TEXT])[0], ordinal=9)
    writes: dict[str, Callable[[WriteTransaction], Awaitable[object]]] = {
        "run": lambda tx: runs.insert(tx, my_run),
        "segment": lambda tx: segments.insert(tx, session_id, [segment_of("more")]),
        "reduction": lambda tx: segments.insert_reductions(tx, session_id, [reduction]),
        "blob": lambda tx: segments.insert_blobs(tx, session_id, [Blob.of("d29ybGQ=", None)]),
        "entry": lambda tx: entries.insert(tx, session_id, manifest_id, [entry]),
        "entry in another's manifest": lambda tx: entries.insert(tx, own.session.session_id, manifest_id, [entry]),
        "outbox": lambda tx: outbox.enqueue(tx, uuid4(), OutboxKind.UPSERT, session_id),
    }

    refused: dict[str, str] = {}
    for name, write in writes.items():
        try:
            await database.write(reader, write)
        except CoatcheckError as error:
            refused[name] = error.detail
    assert set(refused) == set(writes)
    assert all("42501" in detail for detail in refused.values())
    taken = await database.write(reader, lambda tx: runs.take_over(tx, manifest_id, "thief", EPOCH.replace(year=2030), EPOCH))
    assert taken is None


async def test_a_window_stands_in_the_session_of_its_run_and_in_no_other_of_its_owners(database: Database, tenant: Tenancy) -> None:
    owner = await tenant.principal()
    here, there = await keep(database, owner), await keep(database, owner)
    entry = replace(entries_of([TEXT])[0], ordinal=9)

    with pytest.raises(CoatcheckError, match="42501"):
        await database.write(owner, lambda tx: entries.insert(tx, here.session.session_id, there.run.manifest_id, [entry]))


async def test_nobody_makes_a_session_in_anothers_name(database: Database, tenant: Tenancy, other_tenant: Tenancy) -> None:
    mine, yours = await tenant.principal(), await tenant.principal()
    squatted = replace(session_of(mine), owner_id=yours.principal_id)
    unreadable = replace(session_of(mine), acl=(), writers=())
    foreign = Scope(other_tenant.tenant_id, mine.principal_id, mine.acl)

    for session in (squatted, unreadable):
        with pytest.raises(CoatcheckError, match="42501"):
            await database.write(mine, lambda tx, session=session: sessions.insert(tx, session))  # type: ignore[misc]
    elsewhere = session_of(mine)
    assert await database.write(foreign, lambda tx: sessions.insert(tx, elsewhere))
    assert await database.read(mine, lambda tx: sessions.find(tx, elsewhere.session_id)) is None


async def test_an_erased_session_is_gone_for_its_owner_with_everything_in_it(database: Database, tenant: Tenancy) -> None:
    owner = await tenant.principal()
    kept = await keep(database, owner)

    await database.work(tenant.scope, lambda tx: sessions.mark_erased(tx, kept.session.session_id, EPOCH))

    assert await seen(database, owner, kept) == set()
    with pytest.raises(CoatcheckError, match="42501"):
        await database.write(owner, lambda tx: segments.insert(tx, kept.session.session_id, [segment_of("more")]))


async def test_an_erased_run_takes_what_only_it_held_and_leaves_the_rest(database: Database, tenant: Tenancy) -> None:
    owner = await tenant.principal()
    kept = await keep(database, owner)
    other = await store_run(database, owner, kept.session, ["of the other run"])

    await database.work(tenant.scope, lambda tx: runs.mark_erased(tx, kept.run.manifest_id, EPOCH))

    assert await seen(database, owner, kept) == {"session", "session by name", "sessions", "summary", "runs", "latest"}
    assert await seen(database, owner, replace(kept, run=other)) >= {"run", "entries", "handoffs"}


async def test_a_tombstone_shows_to_those_who_could_read_and_to_nobody_else(database: Database, tenant: Tenancy) -> None:
    team = uuid4()
    member, stranger = await tenant.principal(team), await tenant.principal()

    await database.work(tenant.scope, lambda tx: tombstones.insert(tx, "session", ["an id"], None, None, [team_key(team)], EPOCH))

    assert await database.read(member, lambda tx: tombstones.find(tx, "session", "an id")) is not None
    assert await database.read(stranger, lambda tx: tombstones.find(tx, "session", "an id")) is None
