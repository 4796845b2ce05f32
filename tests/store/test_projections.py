"""Projections: what the index has, recorded in place."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.runs import Run
from coatcheck.store import projections
from coatcheck.store.database import Database
from coatcheck.store.projections import ProjectionRow
from tests.store.made import store_run, store_session
from tests.tenants import Tenancy


def row_of(run: Run, text: str, *, generation: int = 1, passages: int = 2) -> ProjectionRow:
    return ProjectionRow(run.session_id, sha256_of(text), generation, passages, "v1", run.manifest_id, 0)


async def stored(database: Database, tenant: Tenancy, *texts: str) -> Run:
    scope = await tenant.principal()
    return await store_run(database, scope, await store_session(database, scope), texts)


async def test_a_projection_is_recorded_and_recorded_again_in_its_place(database: Database, tenant: Tenancy) -> None:
    run = await stored(database, tenant, "a", "b")
    rows = [row_of(run, "a"), row_of(run, "b", passages=3), row_of(run, "a", generation=2)]
    again = replace(rows[0], passages=5, content_version="v2", context_ordinal=9)

    assert await database.work(tenant.scope, lambda tx: projections.record(tx, rows)) == 3
    assert await database.work(tenant.scope, lambda tx: projections.record(tx, [again])) == 1
    assert await database.work(tenant.scope, lambda tx: projections.record(tx, [])) == 0

    shas = [sha256_of("a"), sha256_of("b"), sha256_of("c")]
    found = await database.work(tenant.scope, lambda tx: projections.of_segments(tx, run.session_id, shas, 1))
    assert found == {sha256_of("a"): again, sha256_of("b"): rows[1]}
    every = await database.work(tenant.scope, lambda tx: projections.all_of(tx, run.session_id, shas))
    assert sorted(every, key=repr) == sorted([again, rows[1], rows[2]], key=repr)
    assert await database.work(tenant.scope, lambda tx: projections.passages_of(tx, run.manifest_id, 1)) == 8
    assert await database.work(tenant.scope, lambda tx: projections.passages_of(tx, uuid4(), 1)) == 0


async def test_a_segment_that_is_gone_has_no_projection_to_record(database: Database, tenant: Tenancy) -> None:
    run = await stored(database, tenant, "a")

    recorded = await database.work(tenant.scope, lambda tx: projections.record(tx, [row_of(run, "a"), row_of(run, "erased")]))

    assert recorded == 1


async def test_passages_are_counted_for_each_key_in_its_generation(database: Database, tenant: Tenancy) -> None:
    one, other = await stored(database, tenant, "a", "b"), await stored(database, tenant, "a")
    rows = [row_of(one, "a"), row_of(other, "a", passages=4), row_of(one, "b", generation=2)]
    await database.work(tenant.scope, lambda tx: projections.record(tx, rows))

    keys = [(run.session_id, sha256_of(text), 1) for run in (one, other) for text in "ab"]
    of_two = (one.session_id, sha256_of("b"), 2)
    counts = await database.work(tenant.scope, lambda tx: projections.passages_by_key(tx, [*keys, of_two]))

    assert counts == {keys[0]: 2, keys[2]: 4, of_two: 2}
    assert await database.work(tenant.scope, lambda tx: projections.passages_by_key(tx, [])) == {}


async def test_sessions_since_a_time_come_with_all_their_points(database: Database, tenant: Tenancy) -> None:
    one, other = await stored(database, tenant, "a", "b"), await stored(database, tenant, "a")
    await database.work(
        tenant.scope, lambda tx: projections.record(tx, [row_of(one, "a"), row_of(one, "b", passages=7), row_of(other, "a")])
    )

    async def since(at: datetime | None) -> dict[UUID, int]:
        return await database.work(tenant.scope, lambda tx: projections.sessions_since(tx, 1, at))

    now = datetime.now(UTC)
    assert await since(None) == {one.session_id: 9, other.session_id: 2}
    assert await since(now - timedelta(hours=1)) == {one.session_id: 9, other.session_id: 2}
    assert await since(now + timedelta(hours=1)) == {}
    assert await database.work(tenant.scope, lambda tx: projections.sessions_since(tx, 2, None)) == {}


async def test_the_segments_that_carry_a_runs_context_are_found_and_forgotten(database: Database, tenant: Tenancy) -> None:
    run = await stored(database, tenant, "a", "b", "c")
    elsewhere = replace(row_of(run, "c"), context_manifest_id=uuid4())
    rows = [row_of(run, "a"), row_of(run, "a", generation=2), row_of(run, "b"), elsewhere]
    await database.work(tenant.scope, lambda tx: projections.record(tx, rows))

    carried = await database.work(tenant.scope, lambda tx: projections.with_context_of(tx, run.session_id, run.manifest_id))
    await database.work(tenant.scope, lambda tx: projections.delete(tx, run.session_id, [sha256_of("a")]))
    left = await database.work(tenant.scope, lambda tx: projections.all_of(tx, run.session_id, [sha256_of(text) for text in "abc"]))
    await database.work(tenant.scope, lambda tx: projections.delete_session(tx, run.session_id))

    assert carried == sorted([sha256_of("a"), sha256_of("b")])
    assert {row.segment_sha256 for row in left} == {sha256_of("b"), sha256_of("c")}
    assert await database.work(tenant.scope, lambda tx: projections.sessions_since(tx, 1, None)) == {}
