"""The outbox: one lease for each item, an attempt for each claim, quarantine for what fails again and again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import sqlalchemy as sa

from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.store import outbox, run_leases, runs, sessions
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.outbox import ERROR_MAX_CHARS, Failed, OutboxStats
from tests.store.made import store_run, store_session
from tests.tenants import EPOCH, Tenancy

UNTIL = EPOCH + timedelta(seconds=30)
AFTER = EPOCH + timedelta(seconds=31)


async def enqueue(database: Database, tenant: Tenancy, count: int = 1, **options: object) -> list[OutboxItem]:
    session_id = uuid4()

    async def work(tx: WorkerTransaction) -> list[OutboxItem]:
        return [
            await outbox.enqueue(tx, uuid4(), OutboxKind.UPSERT, session_id, segment_sha256=f"{n:064x}", **options)  # type: ignore[arg-type]
            for n in range(count)
        ]

    return await database.work(tenant.scope, work)


async def claim(database: Database, tenant: Tenancy, owner: str, limit: int = 100, *, now: object = EPOCH) -> list[OutboxItem]:
    until = now + timedelta(seconds=30)  # type: ignore[operator]
    return await database.work(tenant.scope, lambda tx: outbox.claim(tx, owner, limit, now, until))  # type: ignore[arg-type]


async def test_a_claim_gives_the_oldest_first_and_counts_as_an_attempt(database: Database, tenant: Tenancy) -> None:
    made = await enqueue(database, tenant, 5)

    first = await claim(database, tenant, "a", 2)
    rest = await claim(database, tenant, "a")

    assert [item.item_id for item in [*first, *rest]] == [item.item_id for item in made]
    assert {(item.attempts, item.fence) for item in [*first, *rest]} == {(1, 1)}
    assert [item.segment_sha256 for item in first] == [made[0].segment_sha256, made[1].segment_sha256]


async def test_a_claim_leases_no_more_than_it_asked_for_by_whatever_plan(database: Database, tenant: Tenancy) -> None:
    """A subquery that locks with a limit may be run again for each row, and each time it skips what is locked by then."""
    await enqueue(database, tenant, 9)

    async def claimed(tx: WorkerTransaction, setting: str) -> int:
        for other in {"hashjoin", "mergejoin", "nestloop"} - {setting}:
            await tx.connection.execute(sa.text(f"SET LOCAL enable_{other} = off"))
        for other in ("hashagg", "sort", "material", "memoize", "indexscan", "bitmapscan"):
            await tx.connection.execute(sa.text(f"SET LOCAL enable_{other} = off"))
        return len(await outbox.claim(tx, setting, 2, EPOCH, UNTIL))

    counts = {
        join: await database.work(tenant.scope, lambda tx, join=join: claimed(tx, join))  # type: ignore[misc]
        for join in ("hashjoin", "mergejoin", "nestloop")
    }

    assert counts == {"hashjoin": 2, "mergejoin": 2, "nestloop": 2}


async def test_a_crash_counts_too_and_the_next_owner_goes_on_under_the_next_fence(database: Database, tenant: Tenancy) -> None:
    await enqueue(database, tenant)
    [lost] = await claim(database, tenant, "crashed")

    early = await claim(database, tenant, "next", now=EPOCH + timedelta(seconds=29))
    [again] = await claim(database, tenant, "next", now=AFTER)

    assert early == []
    assert (again.item_id, again.attempts, again.fence) == (lost.item_id, 2, 2)
    assert not await database.work(tenant.scope, lambda tx: outbox.complete(tx, lost))
    assert not await database.work(tenant.scope, lambda tx: outbox.fail(tx, lost, "late", AFTER, False))
    assert await database.work(tenant.scope, lambda tx: outbox.complete(tx, again))
    assert await claim(database, tenant, "next", now=AFTER + timedelta(days=1)) == []


async def test_owners_that_claim_at_the_same_time_never_share_an_item(database: Database, tenant: Tenancy) -> None:
    made = await enqueue(database, tenant, 60)
    all_at_it = asyncio.Barrier(4)

    async def drain(owner: str) -> list[OutboxItem]:
        async def first(tx: WorkerTransaction) -> list[OutboxItem]:
            batch = await outbox.claim(tx, owner, 3, EPOCH, UNTIL)
            await all_at_it.wait()  # nobody commits before everybody has claimed
            return batch

        taken = await database.work(tenant.scope, first)
        while batch := await claim(database, tenant, owner, 3):
            taken += batch
        return taken

    shares = await asyncio.gather(*(drain(owner) for owner in "abcd"))

    ids = [item.item_id for share in shares for item in share]
    assert len(ids) == len(set(ids)) == len(made)
    assert min(len(share) for share in shares) >= 3


async def test_a_claim_that_is_not_committed_takes_nothing(database: Database, tenant: Tenancy) -> None:
    await enqueue(database, tenant, 3)
    claimed, go = asyncio.Event(), asyncio.Event()

    async def dies(tx: WorkerTransaction) -> None:
        assert len(await outbox.claim(tx, "a", 2, EPOCH, UNTIL)) == 2
        claimed.set()
        await go.wait()
        raise RuntimeError

    dying = asyncio.create_task(database.work(tenant.scope, dies))
    await claimed.wait()
    meanwhile = await claim(database, tenant, "b")
    go.set()
    await asyncio.gather(dying, return_exceptions=True)
    afterwards = await claim(database, tenant, "b")

    assert (len(meanwhile), len(afterwards)) == (1, 2)
    assert {item.attempts for item in afterwards} == {1}


async def test_a_failure_waits_for_its_next_attempt_and_then_is_put_aside_with_its_error(
    database: Database, tenant: Tenancy
) -> None:
    await enqueue(database, tenant, 2)
    [item, other] = await claim(database, tenant, "a")
    later = EPOCH + timedelta(minutes=5)

    assert await database.work(tenant.scope, lambda tx: outbox.fail(tx, item, "index-unavailable", later, False))
    early = await claim(database, tenant, "a", now=EPOCH + timedelta(minutes=4))
    [again] = [i for i in await claim(database, tenant, "a", now=later) if i.item_id == item.item_id]
    text = "poison \0 \ud800 " + "x" * 1_000
    assert await database.work(tenant.scope, lambda tx: outbox.fail(tx, again, text, later, True))

    assert [i.item_id for i in early] == [other.item_id]
    assert (again.attempts, again.last_error) == (2, "index-unavailable")
    assert [i.item_id for i in await claim(database, tenant, "a", now=later + timedelta(days=9))] == [other.item_id]
    stats = await database.work(tenant.scope, outbox.stats)
    assert (stats.pending, stats.quarantined) == (1, 1)

    assert await database.work(tenant.scope, outbox.requeue_quarantined) == 1
    [released] = [i for i in await claim(database, tenant, "a", now=later + timedelta(days=10)) if i.item_id == item.item_id]
    assert (released.attempts, released.quarantined_at) == (1, None)
    assert released.last_error is not None
    assert released.last_error.startswith("poison")
    assert len(released.last_error) == ERROR_MAX_CHARS


async def test_work_that_gets_on_counts_its_attempts_anew_and_is_not_put_aside_for_those_before(
    database: Database, tenant: Tenancy
) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    run, other = await store_run(database, scope, session, ["text"]), await store_run(database, scope, session, ["other"])
    for _ in range(2):
        await claim(database, tenant, "a", now=AFTER)
        await database.work(tenant.scope, lambda tx: run_leases.void_leases(tx, AFTER))
    third = {item.manifest_id: item for item in await claim(database, tenant, "a", now=AFTER)}

    async def got_on(tx: WorkerTransaction) -> dict[UUID | None, Failed | None]:
        await outbox.note_progress(tx, session.session_id, [sha256_of("text")])
        return {item.manifest_id: await outbox.fail(tx, item, "index-unavailable", AFTER, True) for item in third.values()}

    became = await database.work(tenant.scope, got_on)
    [again] = await claim(database, tenant, "a", now=AFTER)

    assert {manifest_id: item.attempts for manifest_id, item in third.items()} == {run.manifest_id: 3, other.manifest_id: 3}
    assert became == {run.manifest_id: Failed.GIVEN_BACK, other.manifest_id: Failed.PUT_ASIDE}
    assert (again.manifest_id, again.attempts) == (run.manifest_id, 2)
    assert (await database.work(tenant.scope, outbox.stats)).quarantined == 1


async def test_a_runs_work_is_not_claimed_while_its_lease_is_alive(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    run = await store_run(database, scope, await store_session(database, scope), ["text"])

    alive = await claim(database, tenant, "a", now=EPOCH + timedelta(seconds=29))
    expired = await claim(database, tenant, "a", now=AFTER)

    assert alive == []
    assert [item.manifest_id for item in expired] == [run.manifest_id]


async def test_an_erasure_does_not_wait_for_a_lease(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    run = await store_run(database, scope, await store_session(database, scope), ["text"])
    await database.work(
        tenant.scope,
        lambda tx: outbox.enqueue(tx, uuid4(), OutboxKind.ERASE, run.session_id, manifest_id=run.manifest_id),
    )

    items = await claim(database, tenant, "a")

    assert [item.kind for item in items] == [OutboxKind.ERASE]


async def test_work_that_is_not_due_yet_waits(database: Database, tenant: Tenancy) -> None:
    await enqueue(database, tenant, not_before=EPOCH + timedelta(seconds=10))

    assert await claim(database, tenant, "a", now=EPOCH + timedelta(seconds=9)) == []
    assert len(await claim(database, tenant, "a", now=EPOCH + timedelta(seconds=10))) == 1


async def test_work_due_at_once_is_due_by_a_clock_that_is_behind(database: Database, tenant: Tenancy) -> None:
    await enqueue(database, tenant)

    assert len(await claim(database, tenant, "a", now=EPOCH - timedelta(days=365))) == 1


async def test_an_acknowledged_runs_work_goes_and_its_erasure_stays(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    run = await store_run(database, scope, await store_session(database, scope), ["text"])
    await database.work(
        tenant.scope,
        lambda tx: outbox.enqueue(tx, uuid4(), OutboxKind.ERASE, run.session_id, manifest_id=run.manifest_id),
    )

    assert await database.work(tenant.scope, lambda tx: outbox.delete_for_manifest(tx, run.manifest_id)) == 1

    assert [item.kind for item in await claim(database, tenant, "a", now=AFTER)] == [OutboxKind.ERASE]


async def test_a_new_generation_owes_every_acknowledged_run_once(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session, erased = await store_session(database, scope), await store_session(database, scope)
    done, unfinished = [await store_run(database, scope, session, [text]) for text in ("done", "unfinished")]
    gone = await store_run(database, scope, erased, ["gone"])

    async def acknowledge(tx: WorkerTransaction) -> None:
        for run in (done, gone):
            assert run.lease is not None
            assert await runs.acknowledge(tx, run.manifest_id, run.lease, EPOCH, 1, 1, {})
            await outbox.delete_for_manifest(tx, run.manifest_id)
        await sessions.mark_erased(tx, erased.session_id, EPOCH)

    await database.work(tenant.scope, acknowledge)

    added = [await database.work(tenant.scope, outbox.enqueue_every_run) for _ in range(2)]

    assert added == [1, 0]
    items = await claim(database, tenant, "a", now=AFTER)
    assert {item.manifest_id for item in items} == {done.manifest_id, unfinished.manifest_id}


async def test_stats_are_of_one_tenant(database: Database, tenant: Tenancy, other_tenant: Tenancy) -> None:
    made = await enqueue(database, tenant, 3)

    assert await database.work(tenant.scope, outbox.stats) == OutboxStats(3, made[0].created_at, 0)
    assert await database.work(other_tenant.scope, outbox.stats) == OutboxStats(0, None, 0)
    assert await claim(database, other_tenant, "a") == []


HOURS = timedelta(hours=3)


async def test_work_does_not_wait_for_a_clock_that_was_set_back(database: Database, tenant: Tenancy) -> None:
    """Neither what failed and is due in a minute of the old time, nor what a process held that died."""
    await enqueue(database, tenant, 2)
    failed, held = await claim(database, tenant, "a")
    due = EPOCH + timedelta(seconds=60)
    assert await database.work(tenant.scope, lambda tx: outbox.fail(tx, failed, "late", due, False))

    soon = await claim(database, tenant, "b", now=EPOCH - timedelta(minutes=5))
    later = await claim(database, tenant, "b", now=EPOCH - HOURS)

    assert soon == []
    assert {item.item_id for item in later} == {failed.item_id, held.item_id}


async def test_a_run_under_a_lease_of_a_time_to_come_is_not_waited_for(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    run = await store_run(database, scope, await store_session(database, scope), ["text"])
    assert run.lease is not None
    soon = await claim(database, tenant, "b", now=run.lease.until - timedelta(minutes=5))
    later = await claim(database, tenant, "b", now=run.lease.until - HOURS)

    assert ([item.manifest_id for item in soon], [item.manifest_id for item in later]) == ([], [run.manifest_id])


async def test_a_sweep_waits_for_its_time_by_whatever_clock(database: Database, tenant: Tenancy) -> None:
    """Somebody may yet write what it is to sweep."""
    due = EPOCH + timedelta(seconds=60)
    made = await database.work(tenant.scope, lambda tx: outbox.enqueue(tx, uuid4(), OutboxKind.SWEEP, uuid4(), not_before=due))

    assert await claim(database, tenant, "b", now=EPOCH - HOURS) == []
    assert [item.item_id for item in await claim(database, tenant, "b", now=due)] == [made.item_id]
