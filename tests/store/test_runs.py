"""Runs: what is stored comes back; leases, fences and acknowledgements; handoffs that quote."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.runs import HandoffLine, Lease, Run, RunStatus
from coatcheck.store import outbox, runs, segments, sessions, tombstones
from coatcheck.store.database import Database, WorkerTransaction
from tests.store.made import entries_of, handoff_of, run_of, store_run, store_session
from tests.tenants import EPOCH, Tenancy

LATER = EPOCH + timedelta(seconds=31)
UNTIL = EPOCH + timedelta(seconds=90)


async def test_a_run_comes_back_as_it_was_stored_whatever_its_texts_hold(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    line = HandoffLine("- \0 NUL and a lone \ud800 surrogate ☕", sha256_of("a"), uuid4())
    handoff = handoff_of("text with \0 and \udfff", [line], [sha256_of("b")])
    run = replace(run_of(session), handoff=handoff, parent_manifest_id=uuid4(), passages=3, generation=2)

    assert await database.write(scope, lambda tx: runs.insert(tx, run))

    assert await database.read(scope, lambda tx: runs.find(tx, run.manifest_id)) == run
    found = await database.read(
        scope, lambda tx: runs.find_by_request(tx, session.session_id, scope.principal_id, run.idempotency_key)
    )
    assert found == run
    assert await database.read(scope, lambda tx: runs.latest(tx, session.session_id)) == run


async def test_the_same_request_has_one_run(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    run = run_of(session)
    again = replace(run_of(session), idempotency_key=run.idempotency_key)
    elsewhere = replace(again, session_id=(await store_session(database, scope)).session_id)

    stored = [await database.write(scope, lambda tx, run=run: runs.insert(tx, run)) for run in (run, again, elsewhere)]  # type: ignore[misc]

    assert stored == [True, False, True]


async def test_pages_go_from_the_oldest_to_the_newest(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    made = [run_of(session, created_at=EPOCH + timedelta(minutes=n // 2)) for n in range(5)]
    for run in made:
        await database.write(scope, lambda tx, run=run: runs.insert(tx, run))  # type: ignore[misc]

    first = await database.read(scope, lambda tx: runs.page(tx, session.session_id, None, 3))
    after = (first[-1].created_at, first[-1].manifest_id)
    second = await database.read(scope, lambda tx: runs.page(tx, session.session_id, after, 3))

    expected = sorted(made, key=lambda run: (run.created_at, run.manifest_id))
    assert [*first, *second] == expected
    identities = await database.work(tenant.scope, lambda tx: runs.identities(tx, session.session_id))
    assert [(i.manifest_id, i.idempotency_key) for i in identities] == [(r.manifest_id, r.idempotency_key) for r in expected]


async def test_a_lease_is_taken_over_when_it_has_run_out_and_not_before(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    run = await store_run(database, scope, await store_session(database, scope), ["text"])

    early = await database.work(tenant.scope, lambda tx: runs.take_over(tx, run.manifest_id, "b", EPOCH, UNTIL))
    taken = await database.work(tenant.scope, lambda tx: runs.take_over(tx, run.manifest_id, "b", LATER, UNTIL))
    again = await database.write(scope, lambda tx: runs.take_over(tx, run.manifest_id, "c", LATER, UNTIL))

    assert early is None
    assert taken == Lease("b", 2, UNTIL)
    assert again is None


async def test_no_lease_outlives_a_clock_that_was_set_back(database: Database, tenant: Tenancy) -> None:
    """Of a process that died, and whose lease would have the work wait for hours. Ten times a lease is no such thing."""
    scope = await tenant.principal()
    run = await store_run(database, scope, await store_session(database, scope), ["text"])
    held, lease = run.lease, timedelta(seconds=90)
    assert held is not None

    async def taken(set_back: timedelta) -> Lease | None:
        now = held.until - set_back
        return await database.work(tenant.scope, lambda tx: runs.take_over(tx, run.manifest_id, "b", now, now + lease))

    assert await taken(10 * lease) is None
    assert await taken(10 * lease + timedelta(seconds=1)) is not None


async def test_who_lost_the_lease_can_neither_renew_nor_release_nor_acknowledge(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    run = await store_run(database, scope, await store_session(database, scope), ["text"])
    lost = run.lease
    assert lost is not None
    held = await database.work(tenant.scope, lambda tx: runs.take_over(tx, run.manifest_id, "b", LATER, UNTIL))
    assert held is not None

    assert not await database.work(tenant.scope, lambda tx: runs.renew(tx, run.manifest_id, lost, UNTIL))
    assert not await database.work(tenant.scope, lambda tx: runs.release(tx, run.manifest_id, lost))
    assert not await database.work(tenant.scope, lambda tx: runs.acknowledge(tx, run.manifest_id, lost, LATER, 1, 1, {}))
    assert await database.work(tenant.scope, lambda tx: runs.renew(tx, run.manifest_id, held, UNTIL + timedelta(seconds=9)))
    assert await database.work(tenant.scope, lambda tx: runs.acknowledge(tx, run.manifest_id, held, LATER, 7, 3, {"plan": 1}))

    finished = await database.read(scope, lambda tx: runs.find(tx, run.manifest_id))
    assert finished is not None
    assert (finished.status, finished.acknowledged_at, finished.lease) == (RunStatus.ACKNOWLEDGED, LATER, None)
    assert (finished.passages, finished.generation, finished.timings_ms) == (7, 3, {"plan": 1})


async def test_an_acknowledged_run_is_neither_leased_nor_acknowledged_again(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    run = await store_run(database, scope, await store_session(database, scope), ["text"])
    lease = run.lease
    assert lease is not None
    assert await database.work(tenant.scope, lambda tx: runs.acknowledge(tx, run.manifest_id, lease, LATER, 1, 1, {}))

    assert not await database.work(tenant.scope, lambda tx: runs.acknowledge(tx, run.manifest_id, lease, LATER, 1, 1, {}))
    assert await database.work(tenant.scope, lambda tx: runs.take_over(tx, run.manifest_id, "b", LATER, UNTIL)) is None


async def test_neither_an_erased_run_nor_a_run_of_an_erased_session_is_acknowledged(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    of_erased, erased = [await store_run(database, scope, await store_session(database, scope), ["text"]) for _ in range(2)]
    await database.work(tenant.scope, lambda tx: sessions.mark_erased(tx, of_erased.session_id, EPOCH))
    marked = await database.work(tenant.scope, lambda tx: runs.mark_erased(tx, erased.manifest_id, EPOCH))

    for run in (of_erased, erased):
        lease = run.lease
        assert lease is not None
        done = await database.work(
            tenant.scope,
            lambda tx, run=run, lease=lease: runs.acknowledge(tx, run.manifest_id, lease, LATER, 1, 1, {}),  # type: ignore[misc]
        )
        assert not done

    assert marked is not None
    assert await database.work(tenant.scope, lambda tx: runs.mark_erased(tx, erased.manifest_id, LATER)) is None
    left = await database.work(tenant.scope, lambda tx: runs.find(tx, erased.manifest_id))
    assert left is not None
    assert left.erased_at == EPOCH
    assert await database.work(tenant.scope, lambda tx: runs.take_over(tx, erased.manifest_id, "b", LATER, UNTIL)) is None


async def test_a_released_run_can_be_taken_over_at_once_under_the_next_fence(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    run = await store_run(database, scope, await store_session(database, scope), ["text"])
    lease = run.lease
    assert lease is not None

    assert await database.work(tenant.scope, lambda tx: runs.release(tx, run.manifest_id, lease))
    taken = await database.work(tenant.scope, lambda tx: runs.take_over(tx, run.manifest_id, "b", EPOCH, UNTIL))

    assert taken == Lease("b", 2, UNTIL)


async def test_a_successor_voids_every_lease_and_its_predecessor_can_finish_nothing(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    run = await store_run(database, scope, session, ["text"])
    other = await store_run(database, scope, session, ["more"], run=run_of(session, lease_s=60))
    dead = run.lease
    assert dead is not None
    writing_until = await database.work(tenant.scope, lambda tx: runs.writing_until(tx, session.session_id, EPOCH))
    assert writing_until == EPOCH + timedelta(seconds=60)
    await database.work(tenant.scope, lambda tx: runs.release(tx, other.manifest_id, other.lease or dead))
    items = await database.work(tenant.scope, lambda tx: outbox.claim(tx, "dead", 10, EPOCH, UNTIL))

    ended = await database.work(tenant.scope, lambda tx: runs.void_leases(tx, EPOCH))

    assert [item.manifest_id for item in items] == [other.manifest_id]
    assert ended == 2
    assert await database.work(tenant.scope, lambda tx: runs.writing_until(tx, session.session_id, EPOCH)) == EPOCH
    assert not await database.work(tenant.scope, lambda tx: runs.acknowledge(tx, run.manifest_id, dead, EPOCH, 1, 1, {}))
    assert await database.work(tenant.scope, lambda tx: runs.take_over(tx, run.manifest_id, "next", EPOCH, UNTIL)) is not None
    assert len(await database.work(tenant.scope, lambda tx: outbox.claim(tx, "next", 10, EPOCH, UNTIL))) == 1


async def test_a_handoff_is_recognised_by_its_hash_also_after_it_was_rendered_again(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session, elsewhere = await store_session(database, scope), await store_session(database, scope)
    run = await store_run(database, scope, session, ["text"])
    before, after = run.handoff, handoff_of("rendered again")

    async def render(tx: WorkerTransaction) -> None:
        await tombstones.insert_handoff(tx, before.sha256, session.session_id, run.manifest_id, session.acl, EPOCH)
        await runs.replace_handoff(tx, run.manifest_id, after)

    await database.work(tenant.scope, render)

    asked = [before.sha256, after.sha256, sha256_of("unknown")]
    known = await database.read(scope, lambda tx: runs.handoffs_by_sha(tx, session.session_id, asked))
    foreign = await database.read(scope, lambda tx: runs.handoffs_by_sha(tx, elsewhere.session_id, asked))
    assert known == {before.sha256: run.manifest_id, after.sha256: run.manifest_id}
    assert foreign == {}
    stored = await database.read(scope, lambda tx: runs.find(tx, run.manifest_id))
    assert stored is not None
    assert stored.handoff == after


async def test_runs_that_quote_another_are_found_by_line_and_by_overview(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    quoted = await store_run(database, scope, session, ["quoted", "shared"])
    sha, shared = sha256_of("quoted"), sha256_of("shared")

    def quoting(lines: list[HandoffLine], overview_of: list[str]) -> Run:
        return replace(run_of(session), handoff=handoff_of(f"handoff {uuid4()}", lines, overview_of))

    line = HandoffLine("- line", sha, quoted.manifest_id)
    by_line = await store_run(database, scope, session, ["one"], run=quoting([line], []))
    by_overview = await store_run(database, scope, session, ["two"], run=quoting([], [sha]))
    its_own = await store_run(database, scope, session, ["shared"], run=quoting([], [shared]))
    unrelated = await store_run(database, scope, session, ["four"])

    found = await database.work(tenant.scope, lambda tx: runs.quoting(tx, session.session_id, quoted.manifest_id))

    assert {run.manifest_id for run in found} == {by_line.manifest_id, by_overview.manifest_id}
    assert {its_own.manifest_id, unrelated.manifest_id}.isdisjoint(run.manifest_id for run in found)


async def test_runs_under_older_rules_are_found_until_they_and_their_segments_are_scanned(
    database: Database, tenant: Tenancy
) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    made = sorted([(await store_run(database, scope, session, [f"text {n}"])).manifest_id for n in range(3)])

    before = await database.work(tenant.scope, lambda tx: runs.with_older_rules(tx, "rules-2", None, 10))
    rest = await database.work(tenant.scope, lambda tx: runs.with_older_rules(tx, "rules-2", made[0], 10))

    async def scanned(tx: WorkerTransaction) -> None:
        await segments.set_rule_revision(tx, made[1], "rules-2")
        await segments.set_rule_revision(tx, made[2], "rules-2")
        await runs.set_rule_revision(tx, made[1], "rules-2")

    await database.work(tenant.scope, scanned)
    after = await database.work(tenant.scope, lambda tx: runs.with_older_rules(tx, "rules-2", None, 10))

    assert [run.manifest_id for run in before] == made
    assert [run.manifest_id for run in rest] == made[1:]
    assert [run.manifest_id for run in after] == [made[0], made[2]]


async def test_deleting_a_run_takes_its_window_and_leaves_the_others(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    doomed = await store_run(database, scope, session, ["only here", "in both"])
    spared = await store_run(database, scope, session, ["in both"], window=entries_of(["in both"]))

    async def work(tx: WorkerTransaction) -> list[str]:
        await runs.delete(tx, doomed.manifest_id)
        await outbox.delete_for_manifest(tx, doomed.manifest_id)
        return await segments.delete_unreferenced(tx, session.session_id)

    deleted = await database.work(tenant.scope, work)

    assert deleted == [sha256_of("only here")]
    assert await database.work(tenant.scope, lambda tx: runs.find(tx, doomed.manifest_id)) is None
    assert await database.read(scope, lambda tx: runs.find(tx, spared.manifest_id)) == spared
    items = await database.work(tenant.scope, lambda tx: outbox.claim(tx, "a", 10, LATER, UNTIL))
    assert [(item.kind, item.manifest_id) for item in items] == [(OutboxKind.UPSERT, spared.manifest_id)]
