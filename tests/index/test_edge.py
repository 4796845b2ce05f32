"""What only the embedded index owes: its folder, its marks, its process."""

from __future__ import annotations

import asyncio
import math
import operator
import random
import signal
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import qdrant_edge as engine

from coatcheck.domain.errors import IndexUnavailable, RefusedToStart
from coatcheck.domain.passages import RecallFilter
from coatcheck.index.edge import EdgeIndex
from coatcheck.index.lexical import analyse_query
from coatcheck.index.points import dense_name
from tests.index.making import ANN, hashes, named, point, sha


async def search(index: EdgeIndex, query: str) -> list[str]:
    return hashes(await index.search_lexical(ANN.scope, 1, analyse_query(query), RecallFilter(), 10))


async def test_what_was_written_is_there_after_a_clean_stop(tmp_path: Path) -> None:
    first = EdgeIndex.open(tmp_path / "index")
    await first.upsert(ANN.tenant_scope, [point(ANN, "alpha", dense=[1, 0])])
    await first.close()

    again = EdgeIndex.open(tmp_path / "index")

    assert again.was_clean
    assert await search(again, "alpha") == [sha("alpha")]
    assert len(await again.search_dense(ANN.scope, 1, [1, 0], RecallFilter(), 10)) == 1
    await again.close()


async def test_a_new_index_counts_as_clean(tmp_path: Path) -> None:
    index = EdgeIndex.open(tmp_path / "index")

    assert (index.was_clean, index.flushed_at) == (True, None)
    await index.close()


async def test_a_killed_process_leaves_an_unclean_index_that_says_when_it_was_flushed(tmp_path: Path) -> None:
    code = """
        import asyncio, os, signal, sys
        from datetime import UTC, datetime
        from pathlib import Path
        from coatcheck.index.edge import EdgeIndex
        from tests.index.making import ANN, point

        async def main():
            index = EdgeIndex.open(Path(sys.argv[1]), lambda: datetime(2026, 1, 2, tzinfo=UTC))
            await index.upsert(ANN.tenant_scope, [point(ANN, "alpha")])
            await index.flush()
            await index.upsert(ANN.tenant_scope, [point(ANN, "beta")])
            os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(main())
    """
    run = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "index")],
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert run.returncode == -signal.SIGKILL

    index = EdgeIndex.open(tmp_path / "index")

    assert not index.was_clean
    assert index.flushed_at == datetime(2026, 1, 2, tzinfo=UTC)
    assert await index.count(ANN.tenant_scope, named("session"), 1) >= 1
    await index.close()


async def test_an_unclean_stop_is_forgotten_after_the_next_clean_one(tmp_path: Path) -> None:
    EdgeIndex.open(tmp_path / "index")._shard.close()
    second = EdgeIndex.open(tmp_path / "index")
    assert not second.was_clean
    await second.close()

    third = EdgeIndex.open(tmp_path / "index")

    assert third.was_clean
    await third.close()


async def test_the_time_of_a_flush_is_from_before_it_and_moves_only_when_something_was_written(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    index = EdgeIndex.open(tmp_path / "index", lambda: now)
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha")])
    await index.flush()
    written = (tmp_path / "index" / "flushed-at").read_text()

    now += timedelta(hours=1)
    await index.flush()

    assert written == "2026-01-02T00:00:00+00:00"
    assert (tmp_path / "index" / "flushed-at").read_text() == written
    await index.close()


async def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    index = EdgeIndex.open(tmp_path / "index")

    with pytest.raises(RefusedToStart, match="in use"):
        EdgeIndex.open(tmp_path / "index")

    assert await search(index, "alpha") == []
    await index.close()


async def test_a_refused_second_start_does_not_make_the_first_look_clean_or_unclean(tmp_path: Path) -> None:
    index = EdgeIndex.open(tmp_path / "index")
    with pytest.raises(RefusedToStart):
        EdgeIndex.open(tmp_path / "index")
    await index.close()

    again = EdgeIndex.open(tmp_path / "index")

    assert again.was_clean
    await again.close()


async def test_a_broken_folder_is_refused_with_the_way_out(tmp_path: Path) -> None:
    index = EdgeIndex.open(tmp_path / "index")
    await index.upsert(ANN.tenant_scope, [point(ANN, "alpha")])
    await index.close()
    (tmp_path / "index" / "shard" / "edge_config.json").write_text("{")

    with pytest.raises(RefusedToStart, match="move it away"):
        EdgeIndex.open(tmp_path / "index")


async def test_a_shard_whose_making_was_interrupted_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "index" / "shard" / "segments").mkdir(parents=True)

    index = EdgeIndex.open(tmp_path / "index")

    await index.check()
    await index.close()


async def test_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    index = EdgeIndex.open(tmp_path / "index")

    assert (tmp_path / "index").stat().st_mode & 0o777 == 0o700
    await index.close()


async def test_a_closed_index_is_unavailable_and_closes_twice(tmp_path: Path) -> None:
    index = EdgeIndex.open(tmp_path / "index")
    await index.close()

    await index.close()

    with pytest.raises(IndexUnavailable):
        await index.check()
    with pytest.raises(IndexUnavailable):
        await index.upsert(ANN.tenant_scope, [point(ANN, "alpha")])


async def test_what_the_engine_refuses_is_unavailable_without_content(tmp_path: Path) -> None:
    index = EdgeIndex.open(tmp_path / "index")
    index._shard.close()

    with pytest.raises(IndexUnavailable) as refused:
        await index.upsert(ANN.tenant_scope, [point(ANN, "alpha")])

    assert "alpha" not in refused.value.detail
    await asyncio.to_thread(index._writer.shutdown)


async def test_a_write_whose_caller_left_stays_before_what_follows(tmp_path: Path) -> None:
    index = EdgeIndex.open(tmp_path / "index")
    points = [point(ANN, f"alpha {n}") for n in range(2_000)]
    writing = asyncio.create_task(index.upsert(ANN.tenant_scope, points))
    await asyncio.sleep(0.01)

    writing.cancel()
    await index.delete_session(ANN.tenant_scope, named("session"))

    assert await index.count(ANN.tenant_scope, named("session"), 1) == 0
    await index.close()


async def test_a_vacuum_changes_no_result(tmp_path: Path) -> None:
    index = EdgeIndex.open(tmp_path / "index")
    points = [point(ANN, f"alpha number{n}", session=f"s{n % 2}", dense=[1, n / 100]) for n in range(3_000)]
    await index.upsert(ANN.tenant_scope, points)
    await index.delete_session(ANN.tenant_scope, named("s1"))
    dense = hashes(await index.search_dense(ANN.scope, 1, [1, 0.42], RecallFilter(), 10))

    assert await index.vacuum()

    assert (await search(index, "number42"))[:1] == [sha("alpha number42")]
    assert hashes(await index.search_dense(ANN.scope, 1, [1, 0.42], RecallFilter(), 10)) == dense
    assert await index.count(ANN.tenant_scope, named("s0"), 1) == 1_500
    await index.upsert(ANN.tenant_scope, [point(ANN, "later beta", dense=[0, 1])])
    assert await search(index, "beta") == [sha("later beta")]
    await index.close()


async def test_dense_search_compares_every_vector_and_loses_nothing_that_can_be_told_apart(tmp_path: Path) -> None:
    draw = random.Random(1)
    vectors = [unit(draw, 384) for _ in range(2_000)]
    index = EdgeIndex.open(tmp_path / "index")
    await index.upsert(ANN.tenant_scope, [point(ANN, f"text {n}", dense=vector) for n, vector in enumerate(vectors)])
    queries = [unit(draw, 384) for _ in range(10)]

    found = [hashes(await index.search_dense(ANN.scope, 1, query, RecallFilter(), 50)) for query in queries]
    await index.vacuum()
    rewritten = [hashes(await index.search_dense(ANN.scope, 1, query, RecallFilter(), 50)) for query in queries]

    for query, hits in zip(queries, found, strict=True):
        likeness = {sha(f"text {n}"): sum(map(operator.mul, query, vector)) for n, vector in enumerate(vectors)}
        exact = sorted(likeness.values(), reverse=True)[:50]
        assert [likeness[hit] for hit in hits] == pytest.approx(exact, abs=1e-4)
    assert rewritten == found
    await index.close()


async def test_a_folder_whose_vectors_are_wider_goes_on_as_it_is(tmp_path: Path) -> None:
    first = EdgeIndex.open(tmp_path / "index")
    first._shard.update(engine.UpdateOperation.create_dense_vector(dense_name(2), 2, engine.Distance.Cosine))
    await first.close()

    for text in ("alpha", "beta"):
        index = EdgeIndex.open(tmp_path / "index")
        await index.upsert(ANN.tenant_scope, [point(ANN, text, dense=[1, 0])])
        await index.close()

    index = EdgeIndex.open(tmp_path / "index")
    found = await index.search_dense(ANN.scope, 1, [1, 0], RecallFilter(), 10)
    assert sorted(hashes(found)) == sorted([sha("alpha"), sha("beta")])
    await index.close()


def unit(draw: random.Random, length: int) -> list[float]:
    vector = [draw.gauss(0, 1) for _ in range(length)]
    size = math.hypot(*vector)
    return [value / size for value in vector]
