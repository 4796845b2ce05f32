"""The model worker: bounds, deadlines, turns, failures, and nothing left behind."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID

import pytest

from coatcheck.domain.errors import Overloaded, StageFailed, StageUnavailable
from coatcheck.models.worker import BatchLimits, ModelWorker
from coatcheck.ops.progress import EVENT_LOOP, ProgressBoard, Stage, StageReport
from coatcheck.ops.watchdog import Watchdog

OWNER, OTHER = UUID(int=1), UUID(int=2)
LIMIT_S = 20.0


class Lengths:
    """A model that says how long each text is; with ``held`` it waits for leave before each batch."""

    def __init__(self, *, held: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.entered = threading.Event()
        self.leave = threading.Semaphore(0)
        self.held = held

    def __call__(self, texts: Sequence[str]) -> list[int]:
        self.entered.set()
        if self.held:
            assert self.leave.acquire(timeout=30)
        self.batches.append(list(texts))
        return [len(text) for text in texts]

    def let_go(self) -> None:
        self.held = False
        self.leave.release(1_000)


def board_of(*names: str, limit_s: float = 60) -> ProgressBoard:
    return ProgressBoard([Stage(name, False, limit_s) for name in names])


def report_of(board: ProgressBoard, name: str = "rerank") -> StageReport:
    return next(report for report in board.reports() if report.name == name)


@asynccontextmanager
async def worker_of(
    work: Callable[[Sequence[str]], Any], board: ProgressBoard | None = None, *, capacity: int = 8, inputs: int = 4, **more: Any
) -> AsyncIterator[ModelWorker[str, Any]]:
    worker = worker_on("rerank", work, board or board_of("rerank"), capacity=capacity, inputs=inputs, **more)
    try:
        yield worker
    finally:
        if isinstance(work, Lengths):
            work.let_go()
        await asyncio.to_thread(worker.close)


def worker_on(
    stage: str, work: Callable[[Sequence[str]], Any], board: ProgressBoard, *, capacity: int = 8, inputs: int = 4, **more: Any
) -> ModelWorker[str, Any]:
    return ModelWorker(stage, work, board, capacity=capacity, limits=BatchLimits(inputs, 1_000), size_of=len, **more)


@contextmanager
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert {thread for thread in threading.enumerate() if thread.name.startswith("model-")} <= before


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the condition changes in another thread
            await asyncio.sleep(0.002)


async def test_results_come_in_the_order_of_the_inputs() -> None:
    texts = ["x" * (n * 7 % 31) for n in range(50)]

    async with worker_of(Lengths()) as worker:
        assert await worker.run(OWNER, texts, LIMIT_S) == [len(text) for text in texts]
        assert await worker.run(OWNER, [], LIMIT_S) == []
        assert await asyncio.to_thread(worker.run_blocking, OWNER, texts, LIMIT_S) == [len(text) for text in texts]


async def test_a_batch_holds_what_is_alike_in_length_and_no_more_than_its_limits() -> None:
    model = Lengths()
    async with worker_of(model, inputs=3) as worker:
        await worker.run(OWNER, ["a", "x" * 600, "b", "y" * 500, "z" * 2_000, "c", "d"], LIMIT_S)

    assert [[len(text) for text in batch] for batch in model.batches] == [[2_000], [600], [500, 1, 1], [1, 1]]


async def test_a_job_owns_its_inputs() -> None:
    model = Lengths(held=True)
    async with worker_of(model) as worker:
        texts = ["one", "three"]
        asked = asyncio.create_task(worker.run(OWNER, texts, LIMIT_S))
        await until(model.entered.is_set)
        second = ["seven12"]
        waiting = asyncio.create_task(worker.run(OTHER, second, LIMIT_S))
        await asyncio.sleep(0)
        texts.clear()
        second[0] = ""
        model.let_go()

        assert await asked == [3, 5]
        assert await waiting == [7]


async def test_owners_take_turns_by_batches() -> None:
    model = Lengths(held=True)
    async with worker_of(model, inputs=1, capacity=20) as worker:
        many = [asyncio.create_task(worker.run(OWNER, ["many"] * 5, LIMIT_S)) for _ in range(4)]
        await until(model.entered.is_set)
        one = asyncio.create_task(worker.run(OTHER, ["one"] * 2, LIMIT_S))
        await until(lambda: worker.places_taken == 5)

        model.leave.release(5)
        await one

        assert len(model.batches) <= 6
        model.let_go()
        await asyncio.gather(*many)


async def test_who_fills_the_queue_with_long_jobs_keeps_nobody_else_out() -> None:
    model = Lengths(held=True)
    async with worker_of(model, inputs=1, capacity=2) as worker:
        many = [asyncio.create_task(worker.run(OWNER, ["many"] * 50, LIMIT_S)) for _ in range(10)]
        await until(model.entered.is_set)
        others = [asyncio.create_task(worker.run(OTHER, ["other"], LIMIT_S)) for _ in range(3)]
        await until(lambda: worker.places_taken == 3)

        model.leave.release(8)
        await asyncio.gather(*others)

        assert len(model.batches) <= 9
        assert worker.places_taken == 2
        model.let_go()
        await asyncio.gather(*many)


async def test_a_batch_never_mixes_two_jobs() -> None:
    model = Lengths(held=True)
    async with worker_of(model, inputs=100) as worker:
        jobs = [asyncio.create_task(worker.run(OWNER, [f"job {n}"] * 3, LIMIT_S)) for n in range(5)]
        await until(lambda: worker.places_taken == 5)
        model.let_go()
        await asyncio.gather(*jobs)

    assert sorted(map(len, map(set, model.batches))) == [1] * 5


async def test_a_full_queue_is_waited_for() -> None:
    model = Lengths(held=True)
    async with worker_of(model, capacity=1) as worker:
        first = asyncio.create_task(worker.run(OWNER, ["first"], LIMIT_S))
        await until(model.entered.is_set)
        second = asyncio.create_task(worker.run(OWNER, ["second"], LIMIT_S))
        await asyncio.sleep(0.02)
        taken_while_full = worker.places_taken

        model.let_go()

        assert (await first, await second, taken_while_full) == ([5], [6], 1)


async def test_a_queue_that_stays_full_is_overloaded_at_the_deadline() -> None:
    model = Lengths(held=True)
    async with worker_of(model, capacity=1) as worker:
        first = asyncio.create_task(worker.run(OWNER, ["first"], LIMIT_S))
        await until(model.entered.is_set)

        started = time.monotonic()
        with pytest.raises(Overloaded):
            await worker.run(OWNER, ["second"], 0.1)
        with pytest.raises(Overloaded):
            await asyncio.to_thread(worker.run_blocking, OWNER, ["third"], 0.1)

        assert 0.2 <= time.monotonic() - started < 5
        model.let_go()
        await first
    assert model.batches == [["first"]]


async def test_a_late_job_is_answered_at_its_deadline_and_keeps_its_place_until_the_model_lets_go() -> None:
    model = Lengths(held=True)
    async with worker_of(model, inputs=1) as worker:
        with pytest.raises(StageUnavailable, match="late"):
            await worker.run(OWNER, ["one", "two"], 0.1)
        held = worker.places_taken

        model.let_go()
        await until(lambda: worker.places_taken == 0)

        assert held == 1
        assert model.batches == [["one"]]  # the rest of it went along


async def test_a_cancelled_job_that_waits_gives_its_place_back_at_once() -> None:
    model = Lengths(held=True)
    board = board_of("rerank")
    async with worker_of(model, board) as worker:
        first = asyncio.create_task(worker.run(OWNER, ["first"], LIMIT_S))
        await until(model.entered.is_set)
        waiting = asyncio.create_task(worker.run(OWNER, ["waits"], LIMIT_S))
        await until(lambda: worker.places_taken == 2)

        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert (worker.places_taken, report_of(board).in_flight, report_of(board).completions) == (1, 1, 0)
        model.let_go()
        await first
    assert model.batches == [["first"]]


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("broken"), MemoryError(), SystemExit(3), None, [], [1.0], [1.0, float("nan")], [[1.0], [2.0]]],
    ids=["raises", "out of memory", "exits", "nothing", "no results", "too few", "not a number", "another shape"],
)
async def test_what_is_no_answer_fails_its_job_alone_and_the_next_one_is_served(answer: object) -> None:
    given: list[object] = [answer, [1.0, 2.0]]

    def work(texts: Sequence[str]) -> Any:
        one = given.pop(0)
        if isinstance(one, BaseException):
            raise one
        return one

    def is_a_number(result: object) -> bool:
        return isinstance(result, float) and result == result

    board = board_of("rerank")
    async with worker_of(work, board, sound=is_a_number) as worker:
        with pytest.raises(StageUnavailable):
            await worker.run(OWNER, ["a", "b"], LIMIT_S)
        failing = board.failing()

        assert await worker.run(OWNER, ["a", "b"], LIMIT_S) == [1.0, 2.0]
        assert (failing, board.failing()) == (("rerank",), ())
        await until(lambda: worker.places_taken == 0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_thread_that_is_ended_from_outside_fails_its_job_and_is_replaced() -> None:
    model = Lengths()
    async with worker_of(model) as worker:
        assert await worker.run(OWNER, ["one"], LIMIT_S) == [3]
        (thread,) = [one for one in threading.enumerate() if one.name == "model-rerank"]
        assert thread.ident is not None
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
        asked = [asyncio.create_task(worker.run(OWNER, ["four"], LIMIT_S)) for _ in range(3)]

        answers = await asyncio.gather(*asked, return_exceptions=True)

        assert sum(answer == [4] for answer in answers) >= 2
        assert all(isinstance(answer, StageUnavailable) for answer in answers if answer != [4])
        assert await worker.run(OWNER, ["five5"], LIMIT_S) == [5]
        await until(lambda: worker.places_taken == 0)


async def test_closing_refuses_what_waits_and_what_comes_and_lets_the_batch_end() -> None:
    with no_thread_is_left():
        model = Lengths(held=True)
        async with worker_of(model, inputs=1, capacity=2) as worker:
            in_work = asyncio.create_task(worker.run(OWNER, ["in work"], LIMIT_S))
            await until(model.entered.is_set)
            waiting = [asyncio.create_task(worker.run(OWNER, ["waits"], LIMIT_S)) for _ in range(3)]
            await asyncio.sleep(0.02)
            closing = asyncio.create_task(asyncio.to_thread(worker.close))

            for one in waiting:
                with pytest.raises(StageUnavailable, match="shutting down"):
                    await one
            with pytest.raises(StageUnavailable, match="shutting down"):
                await worker.run(OWNER, ["too late"], LIMIT_S)
            model.let_go()

            assert await in_work == [7]
            await closing
            assert worker.places_taken == 0


async def test_a_thread_that_stands_still_does_not_hold_up_the_shutdown() -> None:
    model = Lengths(held=True)
    async with worker_of(model) as worker:
        with pytest.raises(StageUnavailable):
            await worker.run(OWNER, ["stands still"], 0.05)

        started = time.monotonic()
        await asyncio.to_thread(worker.close, 0.1)

        assert time.monotonic() - started < 5


async def test_with_one_model_stalled_the_others_go_on_and_it_is_reported_and_after_its_release_both_results_are_right() -> None:
    reported: list[float] = []
    board = ProgressBoard([Stage("rerank", False, 0.3), Stage("router", False, 0.3), Stage(EVENT_LOOP, True, 60)])
    watchdog = Watchdog(board, 10, interval_s=0.05, dump=lambda: reported.append(time.monotonic()))
    stalled, healthy = Lengths(held=True), Lengths()
    with no_thread_is_left():
        one = worker_on("rerank", stalled, board)
        other = worker_on("router", healthy, board)
        watchdog.start(asyncio.get_running_loop())
        try:
            began = time.monotonic()
            waiting = [asyncio.create_task(one.run(OWNER, ["x" * n], LIMIT_S)) for n in (3, 5)]
            await until(stalled.entered.is_set)
            callers = [asyncio.create_task(other.run(UUID(int=n), ["y" * n] * 9, LIMIT_S)) for n in range(8)]

            assert await asyncio.gather(*callers) == [[n] * 9 for n in range(8)]
            await until(lambda: bool(reported))
            assert 0.3 <= reported[0] - began < 1.5
            assert board.stuck(vital=False) == ("rerank",)
            with pytest.raises(StageUnavailable, match="does not move"):
                await one.run(OWNER, ["new work"], LIMIT_S)

            stalled.let_go()
            assert await asyncio.gather(*waiting) == [[3], [5]]
            assert board.stuck(vital=False) == ()
        finally:
            watchdog.stop()
            await asyncio.to_thread(one.close)
            await asyncio.to_thread(other.close)


async def test_a_thousand_jobs_with_failures_and_cancellations_leave_nothing_behind() -> None:
    def work(texts: Sequence[str]) -> list[int]:
        if any(text.endswith("7") for text in texts):
            raise ValueError(texts)
        return [len(text) for text in texts]

    async def ask(worker: ModelWorker[str, Any], number: int) -> object:
        task = asyncio.create_task(worker.run(UUID(int=number % 8), [f"text {number}"] * 3, LIMIT_S if number % 5 else 0.0005))
        if number % 11 == 0:
            await asyncio.sleep(0)
            task.cancel()
        return (await asyncio.gather(task, return_exceptions=True))[0]

    board = board_of("rerank")
    with no_thread_is_left():
        async with worker_of(work, board, capacity=4, inputs=2) as worker:
            answers: list[object] = []
            for _ in range(20):
                answers += await asyncio.gather(*(ask(worker, n) for n in range(50)))
            await until(lambda: worker.places_taken == 0)
            threads = [thread for thread in threading.enumerate() if thread.name == "model-rerank"]

        right = [n % 50 for n, answer in enumerate(answers) if answer == [len(f"text {n % 50}")] * 3]
        kinds = {type(answer) for answer in answers}
        assert kinds <= {list, StageFailed, StageUnavailable, Overloaded, asyncio.CancelledError}
        assert len(right) >= 500
        assert not [n for n in right if n % 10 == 7]
        assert len(threads) == 1
        assert report_of(board).in_flight == 0


async def test_the_time_of_the_work_is_its_owners() -> None:
    worked: list[tuple[UUID, float]] = []
    model = Lengths(held=True)
    async with worker_of(model, worked=lambda owner, seconds: worked.append((owner, seconds))) as worker:
        first = asyncio.create_task(worker.run(OWNER, ["first"], LIMIT_S))
        await until(model.entered.is_set)
        second = asyncio.create_task(worker.run(OTHER, ["second"], LIMIT_S))
        await asyncio.sleep(0.2)
        model.let_go()
        await asyncio.gather(first, second)

    assert [owner for owner, _ in worked] == [OWNER, OTHER]
    assert worked[0][1] >= 0.2 > worked[1][1]
