"""The connector's real threads: passes overlap, own what they need, and fail where everybody can see it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from coatcheck.domain.errors import InvalidRequest, Overloaded, RefusedToStart, StageUnavailable
from coatcheck.gpu.offload import Offload
from coatcheck.gpu.offload.job import Holder, Stage
from coatcheck.gpu.offload.modelled import Array, ModelledStreams, memory
from coatcheck.ops import progress
from coatcheck.ops.progress import ProgressBoard
from tests.gpu.offload.bench import LIMIT_S, WIDTH, Gate, running, table_rows

BATCHES, TOKENS, DEPTH = 24, 8_192, 8


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether it does in time."""
    ends_at = time.monotonic() + LIMIT_S
    while not condition() and time.monotonic() < ends_at:
        time.sleep(0.005)
    return condition()


@pytest.mark.parametrize("seed", range(3))
def test_24_batches_of_8192_tokens_at_depth_8_are_bit_equal_to_the_synchronous_path(seed: int) -> None:
    random = np.random.default_rng(seed)
    batches = [random.integers(0, 2**40, TOKENS) for _ in range(BATCHES)]
    expected = []
    for tokens in batches:
        expected.append(np.empty((TOKENS, WIDTH), np.float32))
        table_rows(tokens, expected[-1])

    with running(DEPTH, TOKENS, seed=seed) as bench:
        jobs = [bench.launch(number, tokens) for number, tokens in enumerate(batches)]
        for job in jobs:
            bench.offload.result(job)

    assert [bench.read[number].tobytes() for number in range(BATCHES)] == [rows.tobytes() for rows in expected]
    assert len({rows.tobytes() for rows in expected}) == BATCHES


def test_passes_of_other_lengths_read_no_row_of_the_pass_before() -> None:
    lengths = [5, 1, 8, 3, 8, 2]

    with running(2, 8) as bench:
        for number, length in enumerate(lengths):
            bench.offload.result(bench.launch(number, np.arange(length) + 100 * number))

    for number, length in enumerate(lengths):
        rows = np.empty((length, WIDTH), np.float32)
        table_rows(np.arange(length) + 100 * number, rows)
        assert np.array_equal(bench.read[number], rows)


def test_the_failure_of_b_is_delivered_while_a_is_unfinished() -> None:
    def compute(inputs: Array, rows: Array) -> None:
        if inputs[0] == 2:
            raise ArithmeticError
        table_rows(inputs, rows)

    with running(2, 1, compute) as bench:
        bench.pump.hold(bench.model)
        a = bench.launch(1, np.array([1]))
        b = bench.launch(2, np.array([2]))
        waiting = threading.Thread(target=bench.offload.result, args=(a,))
        waiting.start()

        failure = bench.offload.next_failure(LIMIT_S)
        with pytest.raises(StageUnavailable):
            bench.offload.result(b)
        a_was_done = a.settled
        bench.pump.release(bench.model)
        waiting.join(LIMIT_S)

    assert failure is not None
    assert failure.sequence == b.sequence
    assert isinstance(failure.error.__cause__, ArithmeticError)
    assert not a_was_done
    assert a.consumed


def test_failures_are_delivered_in_the_order_of_failing_and_then_none() -> None:
    with running(3, 1) as bench:
        bench.pump.hold(bench.model)
        jobs = [bench.launch(number, np.array([number])) for number in (1, 2, 3)]
        order = [jobs[1], jobs[2], jobs[0]]

        for job in order:
            bench.offload.cancel(job)
        found = [bench.offload.next_failure(LIMIT_S) for _ in order]
        nothing_more = bench.offload.next_failure(0.01)
        bench.pump.release(bench.model)

    assert [failure.sequence for failure in found if failure] == [job.sequence for job in order]
    assert nothing_more is None


def test_a_pass_whose_inputs_do_not_come_stands_in_nobodys_way() -> None:
    with running(2, 1) as bench:
        other = bench.streams.stream("other")
        bench.pump.hold(other)
        target = bench.target.copy()
        slow = bench.offload.submit(bench.inputs, target, written_on=other, consumer=other, limit_s=LIMIT_S)

        bench.offload.result(bench.launch(2, np.array([7])))

        assert not slow.settled
        bench.pump.release(other)
        bench.offload.result(slow)


def test_a_cancelled_pass_keeps_its_slot_until_its_snapshot_is_written() -> None:
    """Or a copy that comes late would write into the next owner's inputs."""
    with running(2, 1) as bench:
        other = bench.streams.stream("other")
        bench.pump.hold(other)
        job = bench.offload.submit(bench.inputs, bench.target, written_on=other, consumer=bench.model, limit_s=LIMIT_S)

        bench.offload.cancel(job)
        bench.offload.result(bench.launch(2, np.array([7])))
        held = bench.offload.report()
        bench.pump.release(other)
        freed = comes_true(lambda: len(bench.offload.report().free) == 2)

    assert [(left.sequence, left.holders) for left in held.jobs] == [(job.sequence, frozenset({Holder.SNAPSHOT}))]
    assert freed


def test_a_full_connector_waits_within_the_passs_time_and_then_says_so() -> None:
    gate = Gate()
    with running(1, 1, gate) as bench:
        job = bench.launch(1, np.array([1]))
        assert gate.reached.wait(LIMIT_S)
        before = bench.offload.report().free, bench.streams.state()

        started = time.monotonic()
        with pytest.raises(Overloaded):
            bench.offload.submit(bench.inputs, bench.target, written_on=bench.model, consumer=bench.model, limit_s=0.2)

        assert 0.2 <= time.monotonic() - started < 5
        assert (bench.offload.report().free, bench.streams.state()) == before
        gate.opened.set()
        bench.offload.result(job)


def test_whoever_waits_for_a_place_gets_the_one_that_comes_free() -> None:
    gate = Gate(lambda inputs: inputs[0] == 1)
    with running(1, 1, gate) as bench:
        first = bench.launch(1, np.array([1]))
        threading.Timer(0.1, gate.opened.set).start()

        second = bench.launch(2, np.array([2]))
        bench.offload.result(second)

    assert first.consumed


def test_a_pass_that_is_late_lets_the_models_stream_through_and_keeps_its_slot_from_the_worker() -> None:
    gate = Gate(lambda inputs: inputs[0] == 1)
    with running(2, 1, gate) as bench:
        job = bench.launch(1, np.array([1]), limit_s=0.2)

        with pytest.raises(StageUnavailable):
            bench.offload.result(job)

        assert comes_true(lambda: 1 in bench.read)
        assert job.slot.memory.seen[0] == -job.sequence
        assert len(bench.offload.report().free) == 1
        gate.opened.set()
        bench.offload.result(bench.launch(2, np.array([2])))
        assert not job.consumed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_death_of_the_worker_fails_every_waiter_and_whoever_comes() -> None:
    def compute(inputs: Array, rows: Array) -> None:
        raise SystemExit

    with running(2, 1, compute) as bench:
        bench.pump.hold(bench.model)
        jobs = [bench.launch(number, np.array([number])) for number in (1, 2)]

        for job in jobs:
            started = time.monotonic()
            with pytest.raises(StageUnavailable, match="no worker"):
                bench.offload.result(job)
            assert time.monotonic() - started < 5

        with pytest.raises(StageUnavailable, match="no worker"):
            bench.launch(3, np.array([3]))
        assert bench.board.failing() == ("offload",)
        bench.pump.release(bench.model)


def test_a_shutdown_fails_what_waits_and_gives_every_slot_back() -> None:
    with running(3, 1) as bench:
        bench.pump.hold(bench.preparation)
        jobs = [bench.launch(number, np.array([number])) for number in (1, 2)]
        threading.Timer(0.1, bench.pump.release, args=(bench.preparation,)).start()

        report = bench.offload.close(5.0)

        assert (sorted(report.free), report.jobs) == ([0, 1, 2], ())
        assert [type(job.failure) for job in jobs] == [StageUnavailable] * 2
        with pytest.raises(StageUnavailable, match="shutting down"):
            bench.launch(3, np.array([3]))


def test_a_shutdown_ends_within_its_limit_beside_a_worker_that_stands_still_and_names_its_pass() -> None:
    gate = Gate()
    with running(1, 1, gate) as bench:
        job = bench.launch(1, np.array([1]))
        assert gate.reached.wait(LIMIT_S)

        started = time.monotonic()
        report = bench.offload.close(0.2)

        assert time.monotonic() - started < 5
        assert [left.sequence for left in report.jobs] == [job.sequence]
        gate.opened.set()


def test_rows_of_another_pass_are_refused_by_their_sequence() -> None:
    """A tag that a stray write left one step behind, as a flag would be."""
    with running(1, 1) as bench:
        bench.offload.result(bench.launch(1, np.array([1])))
        bench.pump.hold(bench.model)
        job = bench.launch(2, np.array([2]))
        assert comes_true(lambda: job.stage is Stage.CONSUMING)

        job.slot.memory.tag[0] = job.sequence - 1
        bench.pump.release(bench.model)

        with pytest.raises(StageUnavailable, match="rows of pass 1 were read for pass 2"):
            bench.offload.result(job)


def test_a_scheduler_deeper_than_offload_is_refused_at_the_start() -> None:
    board = ProgressBoard([progress.Stage("offload", True, 60)])

    with pytest.raises(RefusedToStart, match="3 passes in flight"):
        Offload(ModelledStreams(), lambda: memory(1, (WIDTH,)), table_rows, board, depth=2, scheduler_depth=3)


@pytest.mark.parametrize("tokens", [0, 9])
def test_a_pass_that_no_slot_has_room_for_is_refused_and_nothing_has_changed(tokens: int) -> None:
    with running(1, 8) as bench:
        inputs = np.zeros(tokens, np.int64)

        with pytest.raises(InvalidRequest):
            bench.offload.submit(inputs, bench.target, written_on=bench.model, consumer=bench.model, limit_s=1)

        assert bench.offload.report().free == (0,)
