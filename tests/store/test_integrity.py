"""The scan's stream: every retained segment once, with what is to be compared, in memory that does not grow."""

from __future__ import annotations

import tracemalloc
from uuid import uuid4

import sqlalchemy as sa

from coatcheck.domain.canonical import encode, sha256_of
from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.segments import Reduction
from coatcheck.store import integrity, outbox, projections, runs, segments, sessions
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.integrity import SegmentCheckRow
from coatcheck.store.projections import ProjectionRow
from tests.store.made import segment_of, store_run, store_session
from tests.tenants import EPOCH, Tenancy


async def rows_of(database: Database, tenant: Tenancy, *, generation: int = 1, batch: int = 2) -> list[SegmentCheckRow]:
    pages = [page async for page in integrity.stream_segments(database, tenant.scope, generation, batch)]
    assert all(pages)
    return [row for page in pages for row in page]


async def test_every_segment_comes_once_with_its_reduction_projection_and_acl(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    texts = [f"text {n}" for n in range(7)]
    run = await store_run(database, scope, session, texts)
    sha = sha256_of(texts[0])

    async def work(tx: WorkerTransaction) -> None:
        await segments.insert_reductions(tx, session.session_id, [Reduction(sha, b"short", sha256_of("short"), "r1", {})])
        await projections.record(tx, [ProjectionRow(session.session_id, sha, 1, 3, "v", run.manifest_id, 0)])
        await outbox.delete_for_manifest(tx, run.manifest_id)

    await database.work(tenant.scope, work)

    for batch in (1, 2, 7, 100):
        rows = await rows_of(database, tenant, batch=batch)
        assert [row.sha256 for row in rows] == sorted(sha256_of(text) for text in texts)
    by_sha = {row.sha256: row for row in rows}
    assert by_sha[sha] == SegmentCheckRow(
        session.session_id, sha, encode(texts[0]), b"short", sha256_of("short"), 3, session.acl, pending=False
    )
    assert by_sha[sha256_of(texts[1])].passages is None
    assert (await rows_of(database, tenant, generation=2))[0].passages is None


async def test_a_tenant_without_segments_has_nothing_to_scan(database: Database, tenant: Tenancy, other_tenant: Tenancy) -> None:
    scope = await tenant.principal()
    await store_run(database, scope, await store_session(database, scope), ["text"])

    assert await rows_of(database, other_tenant) == []


async def test_damage_is_handed_on_as_it_is(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    await store_run(database, scope, session, ["lost", "changed"])

    async def damage(tx: WorkerTransaction) -> None:
        change = sa.text("UPDATE segments SET raw = :raw WHERE sha256 = :sha")
        await tx.connection.execute(change, {"raw": None, "sha": sha256_of("lost")})
        await tx.connection.execute(change, {"raw": b"other", "sha": sha256_of("changed")})

    await database.work(tenant.scope, damage)

    rows = {row.sha256: row.raw for row in await rows_of(database, tenant)}
    assert rows == {sha256_of("lost"): None, sha256_of("changed"): b"other"}
    assert set(await database.read(scope, lambda tx: segments.find(tx, session.session_id, list(rows)))) == {sha256_of("changed")}


async def test_what_is_still_owed_is_pending_and_what_was_given_up_is_not(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    owed = await store_run(database, scope, session, ["owed by its run"])
    paid = await store_run(database, scope, session, ["owed alone", "given up", "paid"])

    async def work(tx: WorkerTransaction) -> None:
        await outbox.delete_for_manifest(tx, paid.manifest_id)
        for text in ("owed alone", "given up"):
            await outbox.enqueue(tx, uuid4(), OutboxKind.UPSERT, session.session_id, segment_sha256=sha256_of(text))
        given_up = sa.text("UPDATE outbox SET quarantined_at = now() WHERE segment_sha256 = :sha")
        await tx.connection.execute(given_up, {"sha": sha256_of("given up")})

    await database.work(tenant.scope, work)

    pending = {row.sha256: row.pending for row in await rows_of(database, tenant)}
    assert pending == {
        sha256_of("owed by its run"): True,
        sha256_of("owed alone"): True,
        sha256_of("given up"): False,
        sha256_of("paid"): False,
    }
    assert owed.manifest_id != paid.manifest_id


async def test_what_is_on_its_way_out_is_not_retained(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session, erased = await store_session(database, scope), await store_session(database, scope)
    doomed = await store_run(database, scope, session, ["doomed", "shared"])
    await store_run(database, scope, session, ["shared"])
    await store_run(database, scope, erased, ["gone"])
    await database.work(tenant.scope, lambda tx: runs.mark_erased(tx, doomed.manifest_id, EPOCH))
    await database.work(tenant.scope, lambda tx: sessions.mark_erased(tx, erased.session_id, EPOCH))

    assert [row.sha256 for row in await rows_of(database, tenant)] == [sha256_of("shared")]


async def test_a_scan_holds_one_page_in_memory(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    for n in range(4):
        texts = [f"{n} {m} " + "x" * 3_000 for m in range(1_000)]
        await store_run(database, scope, session, texts)
    one_page_bytes = 100 * len(segment_of(texts[0]).raw)

    tracemalloc.start()
    count = 0
    peaks = []
    async for page in integrity.stream_segments(database, tenant.scope, 1, 100):
        count += len(page)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
    tracemalloc.stop()

    assert count == 4_000
    assert max(peaks) < 10 * one_page_bytes
    assert max(peaks[20:]) < 1.5 * max(peaks[:20])
