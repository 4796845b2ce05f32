"""The lanes: order, bounds, deadlines, cancellation."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar
from uuid import UUID

import pytest

from coatcheck.domain.errors import Overloaded, StageUnavailable
from coatcheck.identity.scopes import tenant_scope
from coatcheck.models.hashing import HashingEmbedder
from coatcheck.models.lanes import BATCH_CHARS, INGEST_NICENESS, EmbeddingLanes
from coatcheck.ops.progress import ProgressBoard, standard_stages

TENANT = tenant_scope(UUID(int=1))
OTHER = tenant_scope(UUID(int=2))


class GatedEmbedder(HashingEmbedder):
    """Waits for leave before each batch and each query, and remembers what it did in which order."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []
        self.leave = threading.Semaphore(0)
        self.in_work = threading.Event()
        self.waiting = 0
        self.most_waiting = 0

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        self._wait("passages", len(texts))
        return HashingEmbedder().embed_passages(texts)

    def embed_query(self, text: str) -> list[float]:
        self._wait("query", 1)
        return HashingEmbedder().embed_query(text)

    def _wait(self, kind: str, count: int) -> None:
        self.in_work.set()
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        assert self.leave.acquire(timeout=20)
        self.waiting -= 1
        self.done.append((kind, count))


@asynccontextmanager
async def lanes_over(
    embedder: HashingEmbedder,
    *,
    batch: int = 8,
    max_waiting: int = 256,
    query_limit_s: float = 10.0,
    batch_limit_s: float = 10.0,
    board: ProgressBoard | None = None,
) -> AsyncIterator[EmbeddingLanes]:
    lanes = EmbeddingLanes(
        embedder,
        board or ProgressBoard(standard_stages(60)),
        batch=batch,
        max_waiting=max_waiting,
        query_limit_s=query_limit_s,
        batch_limit_s=batch_limit_s,
    )
    try:
        yield lanes
    finally:
        if isinstance(embedder, GatedEmbedder):
            embedder.leave.release(1_000)
        await lanes.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the condition changes in another thread
            await asyncio.sleep(0.002)


async def test_results_come_in_the_order_of_the_texts() -> None:
    texts = [f"text {n} " * (n * 7 % 13 + 1) for n in range(60)]
    async with lanes_over(HashingEmbedder()) as lanes:
        assert await lanes.embed_passages(TENANT, texts) == HashingEmbedder().embed_passages(texts)
        assert await lanes.token_offsets(TENANT, texts) == HashingEmbedder().token_offsets(texts)
        assert await lanes.embed_query(TENANT, "alpha") == HashingEmbedder().embed_query("alpha")
        assert await lanes.embed_passages(TENANT, []) == []


async def test_batches_are_small_in_texts_and_in_characters() -> None:
    embedder = GatedEmbedder()
    embedder.leave.release(100)
    async with lanes_over(embedder, batch=3) as lanes:
        await lanes.embed_passages(TENANT, ["short"] * 7 + ["x" * (BATCH_CHARS - 10)] * 2)

    assert embedder.done == [("passages", count) for count in (1, 3, 3, 2)]


async def test_a_query_waits_for_one_batch_and_passes_the_rest() -> None:
    embedder = GatedEmbedder()
    async with lanes_over(embedder, batch=2) as lanes:
        ingest = asyncio.create_task(lanes.embed_passages(TENANT, ["text"] * 10))
        await until(embedder.in_work.is_set)
        query = asyncio.create_task(lanes.embed_query(TENANT, "alpha"))
        await asyncio.sleep(0.02)

        embedder.leave.release(2)
        await query

        assert embedder.done[:2] == [("passages", 2), ("query", 1)]
        assert not ingest.done()
        embedder.leave.release(100)
        await ingest


async def test_queries_without_an_end_keep_nobodys_ingest_waiting() -> None:
    embedder = GatedEmbedder()
    async with lanes_over(embedder, batch=1) as lanes:
        queries = [asyncio.create_task(lanes.embed_query(OTHER, f"query {n}")) for n in range(60)]
        await until(embedder.in_work.is_set)
        ingest = asyncio.create_task(lanes.embed_passages(TENANT, ["text"] * 4))
        await asyncio.sleep(0.02)

        for _ in range(30):
            embedder.leave.release()
            await asyncio.sleep(0.005)

        assert embedder.done.count(("passages", 1)) == 4
        embedder.leave.release(100)
        await asyncio.gather(ingest, *queries)


async def test_while_somebody_asks_the_batches_are_smaller() -> None:
    embedder = GatedEmbedder()
    embedder.leave.release(100)
    texts = ["x" * 900] * 4
    async with lanes_over(embedder) as lanes:
        await lanes.embed_passages(TENANT, texts)
        await lanes.embed_query(OTHER, "alpha")
        await lanes.embed_passages(TENANT, texts)

    assert embedder.done == [("passages", 4), ("query", 1), *[("passages", 1)] * 4]


async def test_two_ingests_take_turns() -> None:
    embedder = GatedEmbedder()
    async with lanes_over(embedder, batch=1) as lanes:
        long = asyncio.create_task(lanes.embed_passages(TENANT, ["long"] * 50))
        await until(embedder.in_work.is_set)
        short = asyncio.create_task(lanes.embed_passages(TENANT, ["short"] * 2))

        for _ in range(8):
            embedder.leave.release()
            await asyncio.sleep(0.02)

        assert short.done()
        assert not long.done()
        embedder.leave.release(100)
        await long


async def test_more_calls_than_can_wait_are_refused_at_once() -> None:
    embedder = GatedEmbedder()
    async with lanes_over(embedder, max_waiting=2) as lanes:
        waiting = [asyncio.create_task(lanes.embed_passages(TENANT, ["text"])) for _ in range(2)]
        await asyncio.sleep(0.01)

        with pytest.raises(Overloaded):
            await lanes.embed_passages(TENANT, ["one too many"])

        embedder.leave.release(100)
        await asyncio.gather(*waiting)
        await lanes.embed_passages(TENANT, ["room again"])


async def test_a_late_query_is_unavailable_and_is_not_worked_on_any_more() -> None:
    embedder = GatedEmbedder()
    async with lanes_over(embedder, query_limit_s=0.05) as lanes:
        ingest = asyncio.create_task(lanes.embed_passages(TENANT, ["text"]))
        await until(embedder.in_work.is_set)

        with pytest.raises(StageUnavailable, match="late"):
            await lanes.embed_query(TENANT, "alpha")

        embedder.leave.release(100)
        await ingest
        await lanes.embed_passages(TENANT, ["another"])
        assert ("query", 1) not in embedder.done


async def test_a_cancelled_ingest_takes_the_rest_of_its_batches_along() -> None:
    embedder = GatedEmbedder()
    async with lanes_over(embedder, batch=1) as lanes:
        ingest = asyncio.create_task(lanes.embed_passages(TENANT, ["text"] * 100))
        await until(embedder.in_work.is_set)

        ingest.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ingest
        embedder.leave.release(100)
        await lanes.embed_query(TENANT, "alpha")

        assert embedder.done == [("passages", 1), ("query", 1)]


async def test_a_failing_model_is_unavailable_and_the_next_call_works() -> None:
    class Failing(HashingEmbedder):
        failures = 1

        def embed_query(self, text: str) -> list[float]:
            if self.failures:
                self.failures -= 1
                raise RuntimeError("out of memory")
            return super().embed_query(text)

    board = ProgressBoard(standard_stages(60))
    async with lanes_over(Failing(), board=board) as lanes:
        with pytest.raises(StageUnavailable):
            await lanes.embed_query(TENANT, "alpha")
        assert board.failing() == ("embed",)

        assert await lanes.embed_query(TENANT, "alpha") == HashingEmbedder().embed_query("alpha")


async def test_closing_refuses_what_waits_and_what_comes() -> None:
    embedder = GatedEmbedder()
    async with lanes_over(embedder) as lanes:
        first = asyncio.create_task(lanes.embed_passages(TENANT, ["in work"]))
        await until(embedder.in_work.is_set)
        waiting = asyncio.create_task(lanes.embed_passages(TENANT, ["waits"]))
        await asyncio.sleep(0.01)
        closing = asyncio.create_task(lanes.close())

        with pytest.raises(StageUnavailable, match="shutting down"):
            await waiting
        with pytest.raises(StageUnavailable, match="shutting down"):
            await lanes.embed_query(TENANT, "too late")
        embedder.leave.release(100)

        assert len(await first) == 1
        await closing


async def test_the_progress_board_sees_the_work_and_a_stuck_embedder_is_not_asked() -> None:
    now = 0.0
    board = ProgressBoard(standard_stages(60), lambda: now)
    embedder = GatedEmbedder()
    async with lanes_over(embedder, board=board) as lanes:
        ingest = asyncio.create_task(lanes.embed_passages(TENANT, ["text"]))
        await until(embedder.in_work.is_set)
        (report,) = [report for report in board.reports() if report.name == "embed"]
        assert report.in_flight == 1

        now = 61.0
        with pytest.raises(StageUnavailable, match="does not move"):
            await lanes.embed_query(TENANT, "alpha")

        embedder.leave.release(100)
        await ingest
        assert board.stuck(vital=False) == ()
        await lanes.embed_query(TENANT, "alpha")


async def test_an_embedder_that_stands_still_is_reported_although_its_callers_have_left() -> None:
    now = 0.0
    board = ProgressBoard(standard_stages(60), lambda: now)
    embedder = GatedEmbedder()
    async with lanes_over(embedder, board=board, query_limit_s=0.05) as lanes:
        for _ in range(3):
            with pytest.raises(StageUnavailable, match="late"):
                await lanes.embed_query(TENANT, "alpha")
        (report,) = [report for report in board.reports() if report.name == "embed"]
        now = 61.0

        assert (report.in_flight, report.completions) == (1, 0)
        assert board.stuck(vital=False) == ("embed",)
        embedder.leave.release(100)
        await until(lambda: board.stuck(vital=False) == ())
        await lanes.embed_passages(TENANT, ["again"])


async def test_a_busy_lane_answers_queries_quickly() -> None:
    class Sleeping(HashingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
            time.sleep(0.01)
            return super().embed_passages(texts)

    async with lanes_over(Sleeping(), batch=1) as lanes:
        ingest = asyncio.create_task(lanes.embed_passages(TENANT, ["text"] * 200))
        await asyncio.sleep(0.05)

        for _ in range(5):
            await lanes.embed_query(TENANT, "alpha")

        assert not ingest.done()  # it would be, had each query waited for its turn
        ingest.cancel()
        await asyncio.gather(ingest, return_exceptions=True)


async def test_a_tenant_with_many_calls_gets_one_batch_between_two_of_anothers() -> None:
    embedder = GatedEmbedder()
    async with lanes_over(embedder, batch=2) as lanes:
        many = [asyncio.create_task(lanes.embed_passages(TENANT, ["text"] * 6)) for _ in range(10)]
        await until(embedder.in_work.is_set)
        one = asyncio.create_task(lanes.embed_passages(OTHER, ["other"] * 3))
        await asyncio.sleep(0.02)

        for _ in range(6):
            embedder.leave.release()
            await asyncio.sleep(0.02)

        assert one.done()
        assert ("passages", 1) in embedder.done[:4]  # the rest of the other tenant's three
        embedder.leave.release(1_000)
        await asyncio.gather(*many)


async def test_the_time_of_the_work_is_the_tenants_and_waiting_is_nobodys() -> None:
    worked: list[tuple[UUID, float]] = []
    embedder = GatedEmbedder()
    lanes = EmbeddingLanes(
        embedder, ProgressBoard(standard_stages(60)), worked=lambda tenant_id, seconds: worked.append((tenant_id, seconds))
    )
    first = asyncio.create_task(lanes.embed_passages(TENANT, ["text"]))
    await until(embedder.in_work.is_set)
    second = asyncio.create_task(lanes.embed_query(OTHER, "text"))
    await asyncio.sleep(0.3)

    embedder.leave.release(2)
    await asyncio.gather(first, second)
    await lanes.close()

    assert [tenant_id for tenant_id, _ in worked] == [TENANT.tenant_id, OTHER.tenant_id]
    assert worked[0][1] >= 0.3 > worked[1][1]


class TwoAtATime(GatedEmbedder):
    threads = 2


async def test_an_embedder_of_two_threads_works_on_two_batches_of_one_call() -> None:
    embedder = TwoAtATime()
    async with lanes_over(embedder, batch=1) as lanes:
        ingest = asyncio.create_task(lanes.embed_passages(TENANT, ["a", "bb", "ccc", "dddd", "eeeee"]))
        await until(lambda: embedder.waiting == 2)

        embedder.leave.release(100)

        assert await ingest == HashingEmbedder().embed_passages(["a", "bb", "ccc", "dddd", "eeeee"])
        assert embedder.most_waiting == 2


async def test_while_somebody_asks_one_of_two_workers_is_kept_for_queries() -> None:
    embedder = TwoAtATime()
    embedder.leave.release()
    async with lanes_over(embedder, batch=1) as lanes:
        await lanes.embed_query(OTHER, "alpha")
        ingest = asyncio.create_task(lanes.embed_passages(TENANT, ["a", "bb", "ccc", "dddd"]))
        await until(lambda: embedder.waiting == 1)
        await asyncio.sleep(0.05)
        assert embedder.waiting == 1

        query = asyncio.create_task(lanes.embed_query(OTHER, "beta"))
        await until(lambda: embedder.waiting == 2)
        embedder.leave.release(100)

        assert await query == HashingEmbedder().embed_query("beta")
        assert len(await ingest) == 4


async def test_the_second_of_two_workers_takes_a_query_while_the_first_is_at_work() -> None:
    embedder = TwoAtATime()
    async with lanes_over(embedder) as lanes:
        queries = [asyncio.create_task(lanes.embed_query(OTHER, text)) for text in ("alpha", "beta", "gamma")]

        await until(lambda: embedder.waiting == 2)
        embedder.leave.release(100)

        assert await asyncio.gather(*queries) == [HashingEmbedder().embed_query(text) for text in ("alpha", "beta", "gamma")]


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux alone")
async def test_ingest_gives_way_to_those_who_wait_for_an_answer() -> None:
    class Noting(HashingEmbedder):
        threads = 2
        niceness: ClassVar[dict[str, int]] = {}

        def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
            self.niceness["passages"] = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
            return HashingEmbedder().embed_passages(texts)

        def embed_query(self, text: str) -> list[float]:
            self.niceness["query"] = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
            return super().embed_query(text)

    async with lanes_over(Noting()) as lanes:
        await lanes.embed_query(OTHER, "alpha")
        await lanes.embed_passages(TENANT, ["a"])

    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert Noting.niceness == {"query": own, "passages": min(19, own + INGEST_NICENESS)}


async def test_a_failing_batch_ends_its_call_and_what_stays_in_work_of_it_is_still_reported() -> None:
    class FailsAtTheFirst(TwoAtATime):
        def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
            if "first" in texts:
                while not self.waiting:
                    time.sleep(0.001)
                raise RuntimeError("out of memory")
            return super().embed_passages(texts)

    board = ProgressBoard(standard_stages(60))
    embedder = FailsAtTheFirst()
    async with lanes_over(embedder, batch=1, board=board) as lanes:
        with pytest.raises(StageUnavailable):
            await lanes.embed_passages(TENANT, ["first", "last", "one"])
        await until(lambda: embedder.waiting == 1)

        assert in_flight(board) == 1
        embedder.leave.release(100)
        await until(lambda: in_flight(board) == 0)
        assert ("passages", 1) in embedder.done
        assert len(embedder.done) == 1


async def test_what_ends_a_thread_from_outside_costs_one_call() -> None:
    class Killed(HashingEmbedder):
        kills = 1

        def embed_query(self, text: str) -> list[float]:
            if self.kills:
                self.kills -= 1
                me = ctypes.c_ulong(threading.get_ident())
                ctypes.pythonapi.PyThreadState_SetAsyncExc(me, ctypes.py_object(SystemExit))
                time.sleep(0.01)
            return super().embed_query(text)

    async with lanes_over(Killed()) as lanes:
        with pytest.raises(StageUnavailable):
            await lanes.embed_query(TENANT, "alpha")

        assert await lanes.embed_query(TENANT, "beta") == HashingEmbedder().embed_query("beta")


def in_flight(board: ProgressBoard) -> int:
    (report,) = [report for report in board.reports() if report.name == "embed"]
    return report.in_flight
