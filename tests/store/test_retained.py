"""The scan's walk: every retained segment once, what is doubtful or lost of them, in memory that does not grow."""

from __future__ import annotations

import tracemalloc
from uuid import UUID, uuid4

import psycopg
import pytest
import sqlalchemy as sa

from coatcheck.domain.canonical import encode, sha256_of
from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.runs import Run
from coatcheck.domain.segments import Reduction
from coatcheck.store import integrity, outbox, projections, retained, runs, segments, sessions
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.engine import with_driver
from coatcheck.store.integrity import SegmentCheckRow
from coatcheck.store.projections import ProjectionRow
from coatcheck.store.retained import Page, stream_retained
from tests.postgres import Postgres
from tests.store.made import segment_of, store_run, store_session
from tests.tenants import EPOCH, Tenancy


async def pages_of(database: Database, tenant: Tenancy, *, most: int = 2, generation: int = 1, points: bool = True) -> list[Page]:
    pages = [page async for page in stream_retained(database, tenant.scope, generation, with_passages=points, most=most)]
    assert all(page.segments or page.lost for page in pages)
    return pages


async def hashes_of(database: Database, tenant: Tenancy, *, most: int = 2) -> list[str]:
    return [row[1] for page in await pages_of(database, tenant, most=most) for row in page.segments]


async def doubtful_of(database: Database, tenant: Tenancy, *, generation: int = 1) -> set[str]:
    """The same, whether passages are asked for or not."""
    with_passages = await pages_of(database, tenant, generation=generation)
    without = await pages_of(database, tenant, generation=generation, points=False)
    found, alone = ({sha for page in pages for _, sha in page.doubtful()} for pages in (with_passages, without))
    assert found == alone
    return found


async def as_stored(database: Database, tenant: Tenancy, session_id: UUID, *texts: str) -> dict[str, SegmentCheckRow]:
    keys = [(session_id, sha256_of(text)) for text in texts]
    return {row.sha256: row for row in await database.work(tenant.scope, lambda tx: integrity.of_keys(tx, keys, 1))}


async def settle(database: Database, tenant: Tenancy, run: Run, *texts: str, passages: int = 1) -> None:
    """The run's outbox is empty, and these texts are projected."""
    rows = [ProjectionRow(run.session_id, sha256_of(text), 1, passages, "v", run.manifest_id, 0) for text in texts]

    async def work(tx: WorkerTransaction) -> None:
        await projections.record(tx, rows)
        await outbox.delete_for_manifest(tx, run.manifest_id)

    await database.work(tenant.scope, work)


async def execute(database: Database, tenant: Tenancy, statement: str, **parameters: object) -> None:
    await database.work(tenant.scope, lambda tx: tx.connection.execute(sa.text(statement), parameters))


async def lose(postgres: Postgres, database_url: str, *shas: str) -> None:
    """Rows go as a broken disk takes them: past every foreign key."""
    name = sa.make_url(database_url).database
    assert name is not None
    url = with_driver(postgres.owner_url(name)).set(drivername="postgresql").render_as_string(hide_password=False)
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        for table, column in (("projections", "segment_sha256"), ("segments", "sha256")):
            await connection.execute(f"DELETE FROM {table} WHERE {column} = ANY (%s)", [list(shas)])


@pytest.mark.parametrize("most", [1, 2, 7, 100])
async def test_every_segment_comes_once_in_pages_of_any_size(database: Database, tenant: Tenancy, most: int) -> None:
    scope = await tenant.principal()
    texts = [f"text {n}" for n in range(7)]
    await store_run(database, scope, await store_session(database, scope), texts)

    found = await hashes_of(database, tenant, most=most)

    assert found == sorted(sha256_of(text) for text in texts)


async def test_what_the_index_is_to_hold_comes_with_reduction_passages_and_acl(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    run = await store_run(database, scope, session, ["one", "two", "bare"])
    reduction = Reduction(sha256_of("one"), b"short", sha256_of("short"), "r1", {})
    await database.work(tenant.scope, lambda tx: segments.insert_reductions(tx, session.session_id, [reduction]))
    await settle(database, tenant, run, "one", passages=3)
    await settle(database, tenant, run, "two")

    expected = {row.sha256: row for page in await pages_of(database, tenant) for row in page.expected()}

    assert expected == {
        sha256_of("one"): (session.session_id, sha256_of("one"), sha256_of("short"), 3, session.acl),
        sha256_of("two"): (session.session_id, sha256_of("two"), None, 1, session.acl),
    }
    assert (await as_stored(database, tenant, session.session_id, "one"))[sha256_of("one")] == SegmentCheckRow(
        session.session_id, sha256_of("one"), encode("one"), b"short", sha256_of("short"), 3, session.acl, pending=False
    )


async def test_a_tenant_without_segments_has_nothing_to_scan(database: Database, tenant: Tenancy, other_tenant: Tenancy) -> None:
    scope = await tenant.principal()
    await store_run(database, scope, await store_session(database, scope), ["text"])

    assert await pages_of(database, other_tenant) == []


async def test_only_what_may_not_be_whole_is_doubtful(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    texts = ["lost", "changed", "bare", "reduced well", "reduced badly", "whole"]
    run = await store_run(database, scope, session, texts)
    await settle(database, tenant, run, *(text for text in texts if text != "bare"))
    assert await doubtful_of(database, tenant) == {sha256_of("bare")}

    reductions = [
        Reduction(sha256_of("reduced well"), b"short", sha256_of("short"), "r1", {}),
        Reduction(sha256_of("reduced badly"), b"other", sha256_of("short"), "r1", {}),
    ]
    await database.work(tenant.scope, lambda tx: segments.insert_reductions(tx, session.session_id, reductions))
    await execute(database, tenant, "UPDATE segments SET raw = NULL WHERE sha256 = :sha", sha=sha256_of("lost"))
    await execute(database, tenant, "UPDATE segments SET raw = 'x' WHERE sha256 = :sha", sha=sha256_of("changed"))

    found = await doubtful_of(database, tenant)

    assert found == {sha256_of(text) for text in ("lost", "changed", "bare", "reduced badly")}
    assert await doubtful_of(database, tenant, generation=2) == {sha256_of(text) for text in texts}
    rows = await as_stored(database, tenant, session.session_id, "lost", "changed")
    assert {sha: row.raw for sha, row in rows.items()} == {sha256_of("lost"): None, sha256_of("changed"): b"x"}
    assert set(await database.read(scope, lambda tx: segments.find(tx, session.session_id, list(rows)))) == {sha256_of("changed")}


async def test_what_is_still_owed_is_pending_and_what_was_given_up_is_not(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = await store_session(database, scope)
    await store_run(database, scope, session, ["owed by its run"])
    paid = await store_run(database, scope, session, ["owed alone", "given up", "paid"])

    async def work(tx: WorkerTransaction) -> None:
        await outbox.delete_for_manifest(tx, paid.manifest_id)
        for text in ("owed alone", "given up"):
            await outbox.enqueue(tx, uuid4(), OutboxKind.UPSERT, session.session_id, segment_sha256=sha256_of(text))
        given_up = sa.text("UPDATE outbox SET quarantined_at = now() WHERE segment_sha256 = :sha")
        await tx.connection.execute(given_up, {"sha": sha256_of("given up")})

    await database.work(tenant.scope, work)

    rows = await as_stored(database, tenant, session.session_id, "owed by its run", "owed alone", "given up", "paid")
    assert {sha: row.pending for sha, row in rows.items()} == {
        sha256_of("owed by its run"): True,
        sha256_of("owed alone"): True,
        sha256_of("given up"): False,
        sha256_of("paid"): False,
    }


async def test_what_is_on_its_way_out_is_not_retained(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session, erased = await store_session(database, scope), await store_session(database, scope)
    doomed = await store_run(database, scope, session, ["doomed", "shared"])
    await store_run(database, scope, session, ["shared"])
    await store_run(database, scope, erased, ["gone"])
    await database.work(tenant.scope, lambda tx: runs.mark_erased(tx, doomed.manifest_id, EPOCH))
    await database.work(tenant.scope, lambda tx: sessions.mark_erased(tx, erased.session_id, EPOCH))

    assert await hashes_of(database, tenant) == [sha256_of("shared")]
    assert await doubtful_of(database, tenant) == {sha256_of("shared")}
    assert set(await as_stored(database, tenant, session.session_id, "doomed", "shared")) == {sha256_of("shared")}


@pytest.mark.parametrize("most", [1, 3, 100])
@pytest.mark.parametrize("limit", [2, 1_000])
async def test_segments_without_a_row_are_named_once(
    database: Database,
    postgres: Postgres,
    database_url: str,
    tenant: Tenancy,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    limit: int,
) -> None:
    monkeypatch.setattr(retained, "LOST_LIMIT", limit)
    scope = await tenant.principal()
    session = await store_session(database, scope)
    texts = [f"text {n}" for n in range(9)]
    await store_run(database, scope, session, texts)
    await store_run(database, scope, session, texts[:3])
    in_order = sorted(sha256_of(text) for text in texts)
    gone = [in_order[n] for n in (0, 1, 2, 4, 7, 8)]
    await lose(postgres, database_url, *gone)

    pages = await pages_of(database, tenant, most=most)

    assert [key for page in pages for key in page.lost] == [(session.session_id, sha) for sha in gone]
    assert [row[1] for page in pages for row in page.segments] == [in_order[n] for n in (3, 5, 6)]


async def test_lost_segments_of_erased_windows_are_not_missed(
    database: Database, postgres: Postgres, database_url: str, tenant: Tenancy
) -> None:
    scope = await tenant.principal()
    session, erased = await store_session(database, scope), await store_session(database, scope)
    doomed = await store_run(database, scope, session, ["doomed", "shared"])
    await store_run(database, scope, session, ["shared"])
    await store_run(database, scope, erased, ["gone"])
    await database.work(tenant.scope, lambda tx: runs.mark_erased(tx, doomed.manifest_id, EPOCH))
    await database.work(tenant.scope, lambda tx: sessions.mark_erased(tx, erased.session_id, EPOCH))
    await lose(postgres, database_url, *(sha256_of(text) for text in ("doomed", "shared", "gone")))

    pages = await pages_of(database, tenant)

    assert [key for page in pages for key in page.lost] == [(session.session_id, sha256_of("shared"))]


async def test_a_scan_holds_few_pages_in_memory_and_long_texts_make_short_pages(
    database: Database, tenant: Tenancy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retained, "FIRST_SEGMENTS", 50)
    monkeypatch.setattr(retained, "PAGE_BYTES", 300_000)
    scope = await tenant.principal()
    session = await store_session(database, scope)
    for n in range(4):
        texts = [f"{n} {m} " + "x" * 3_000 for m in range(1_000)]
        await store_run(database, scope, session, texts)
    size_bytes = len(segment_of(texts[0]).raw)

    tracemalloc.start()
    lengths, peaks = [], []
    async for page in stream_retained(database, tenant.scope, 1, with_passages=True):
        lengths.append(len(page.segments))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
    tracemalloc.stop()

    assert sum(lengths) == 4_000
    assert set(lengths[1:-1]) <= {300_000 // size_bytes - 1, 300_000 // size_bytes, 300_000 // size_bytes + 1}
    assert max(peaks) < 10 * 300_000
    assert max(peaks[20:]) < 1.5 * max(peaks[:20])
