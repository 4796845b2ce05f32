"""The watchdog over the offload path: it fires on what stands still, and on nothing that is idle, long or slow."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from coatcheck.gpu.offload import Job
from coatcheck.gpu.offload.job import Stage
from coatcheck.gpu.offload.modelled import Array
from coatcheck.ops.progress import ProgressBoard
from coatcheck.ops.watchdog import EXIT_STUCK, Watchdog
from tests.gpu.offload.bench import LIMIT_S, Gate, running
from tests.gpu.offload.world import World

STAGE_LIMIT_S = 0.5
MINUTE_S = 60.0


class Seen:
    """What a watchdog did, and when."""

    def __init__(self) -> None:
        self.dumped = threading.Event()
        self.dumped_at = 0.0
        self.dumps = 0
        self.exits: list[int] = []

    def dump(self) -> None:
        self.dumps += 1
        if not self.dumped.is_set():
            self.dumped_at = time.monotonic()
            self.dumped.set()

    def watchdog(self, board: ProgressBoard) -> Watchdog:
        return Watchdog(board, 60, dump=self.dump, end_process=self.exits.append)


@pytest.mark.parametrize("stuck_at", ["inputs", "computing", "consuming"])
def test_a_stuck_pass_is_found_with_stacks_within_a_second_of_its_limit_wherever_it_stands(stuck_at: str) -> None:
    gate, seen = Gate(lambda inputs: stuck_at == "computing"), Seen()
    with running(2, 1, gate, limit_s=STAGE_LIMIT_S) as bench:
        watchdog = seen.watchdog(bench.board)
        watchdog.start()
        for name, stream in (("inputs", bench.preparation), ("consuming", bench.model)):
            if stuck_at == name:
                bench.pump.hold(stream)
        started = time.monotonic()
        bench.launch(1, np.array([1]), limit_s=LIMIT_S)

        found = seen.dumped.wait(LIMIT_S)

        assert found
        assert STAGE_LIMIT_S <= seen.dumped_at - started <= STAGE_LIMIT_S + 1.0
        assert bench.board.stuck(vital=True) == ("offload",)
        watchdog.stop()
        gate.opened.set()
        bench.pump.release(bench.preparation)
        bench.pump.release(bench.model)


class Simulated:
    """The connector over modelled streams with a simulated clock, and a watchdog that looks every half second of it."""

    def __init__(self) -> None:
        self.world = World(1, 2)
        self.seen = Seen()
        self._watchdog = Watchdog(
            self.world.board, 5, monotonic=self.world.now, dump=self.seen.dump, end_process=self.seen.exits.append
        )

    def passes(self, seconds: float) -> None:
        for _ in range(int(2 * seconds)):
            self.world.time += 0.5
            self._watchdog.look()

    def works_until(self, job: Job[Array], stage: Stage) -> None:
        """The worker goes on until the job has come to this stage."""
        while job.stage is not stage:
            self.world.worker.act(late=False)

    def launch(self) -> Job[Array]:
        """One pass, put into the streams; nothing of it is executed yet."""
        world = self.world
        steps = world.offload.passes.submit(world.inputs, world.target, world.preparation, world.model, 1e9)
        while True:
            try:
                waits = steps.send(None)
                assert waits is None or waits.ready()
            except StopIteration as launched:
                job: Job[Array] = launched.value
                return job


def test_nothing_in_flight_is_nothing_stuck() -> None:
    simulated = Simulated()

    simulated.passes(30 * MINUTE_S)

    assert (simulated.seen.dumps, simulated.seen.exits) == (0, [])


def test_a_pass_behind_a_prefill_of_half_an_hour_is_slow_and_not_stuck_while_the_model_says_that_it_moves() -> None:
    simulated = Simulated()
    simulated.launch()

    for _ in range(60):
        simulated.passes(30)
        simulated.world.offload.moved()

    assert (simulated.seen.dumps, simulated.seen.exits) == (0, [])


def test_passes_that_each_take_nearly_the_limit_are_slow_and_not_stuck_for_half_an_hour() -> None:
    simulated = Simulated()
    world = simulated.world

    for _ in range(31):
        simulated.launch()
        simulated.passes(58)
        while world.model.can_go_on() or world.worker.choice(world.now()) is not None:
            if world.model.can_go_on():
                world.model.go_on()
            else:
                world.worker.act(late=False)

    assert (simulated.seen.dumps, simulated.seen.exits) == (0, [])
    assert world.board.reports()[0].completions == 31


def test_a_pass_that_takes_nearly_the_limit_in_each_of_its_stages_is_slow_and_not_stuck() -> None:
    simulated = Simulated()
    world = simulated.world
    job = simulated.launch()

    simulated.passes(50)
    while world.model.can_go_on():
        world.model.go_on()
    simulated.works_until(job, Stage.COMPUTING)
    simulated.passes(50)
    simulated.works_until(job, Stage.CONSUMING)
    simulated.passes(50)
    while world.model.can_go_on():
        world.model.go_on()
    world.offload.ledger.reap()

    assert job.consumed
    assert (simulated.seen.dumps, simulated.seen.exits) == (0, [])


def test_a_pass_that_stands_still_beyond_limit_and_grace_ends_the_process_and_its_late_neighbours_do_not_save_it() -> None:
    """A worker that hangs in one pass: others come and leave at their deadlines, which is no progress."""
    simulated = Simulated()
    world = simulated.world
    hangs = simulated.launch()
    while world.model.can_go_on():
        world.model.go_on()
    simulated.works_until(hangs, Stage.COMPUTING)
    world.offload.cancel(hangs)  # its caller leaves; the worker does not come back

    for _ in range(7):
        other = simulated.launch()
        simulated.passes(10)
        world.offload.cancel(other)
        while world.model.can_go_on():
            world.model.go_on()
        world.offload.ledger.reap()

    assert simulated.seen.dumps >= 1
    assert simulated.seen.exits[0] == EXIT_STUCK
