"""The watchdog ends a process that cannot progress, and nothing else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest
import structlog
from structlog.testing import capture_logs

from coatcheck.ops.progress import EVENT_LOOP, ProgressBoard, Stage, standard_stages
from coatcheck.ops.watchdog import EXIT_STUCK, Watchdog
from tests.clocks import Clock


class Outcome:
    """What the watchdog did."""

    def __init__(self) -> None:
        self.dumps = 0
        self.exits: list[int] = []

    def dump(self) -> None:
        self.dumps += 1


@pytest.fixture(autouse=True)
def _every_level_is_logged() -> None:
    """Whatever an app that ran in this process before was set to."""
    structlog.reset_defaults()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outcome() -> Outcome:
    return Outcome()


@pytest.fixture
def board(clock: Clock) -> ProgressBoard:
    return ProgressBoard([Stage("plan", True, 10), Stage("embed", False, 10)], clock)


@pytest.fixture
def watchdog(board: ProgressBoard, clock: Clock, outcome: Outcome) -> Watchdog:
    return Watchdog(board, 5, monotonic=clock, dump=outcome.dump, end_process=outcome.exits.append)


def test_a_vital_stage_is_dumped_when_found_stuck_and_ends_the_process_with_stacks_beyond_the_grace(
    board: ProgressBoard, clock: Clock, outcome: Outcome, watchdog: Watchdog
) -> None:
    board.begin("plan")
    clock.now += 11
    watchdog.look()
    clock.now += 4
    watchdog.look()
    within_grace = list(outcome.exits), outcome.dumps
    clock.now += 1
    watchdog.look()

    assert within_grace == ([], 1)
    assert (outcome.exits, outcome.dumps) == ([EXIT_STUCK], 2)


def test_a_stage_that_moves_within_the_grace_saves_the_process(
    board: ProgressBoard, clock: Clock, outcome: Outcome, watchdog: Watchdog
) -> None:
    piece = board.begin("plan")
    clock.now += 11
    watchdog.look()
    piece.advance()
    clock.now += 4
    watchdog.look()
    clock.now += 7
    watchdog.look()

    assert outcome.exits == []


def test_an_optional_stage_is_dumped_once_and_never_ends_the_process(
    board: ProgressBoard, clock: Clock, outcome: Outcome, watchdog: Watchdog
) -> None:
    board.begin("embed")
    clock.now += 11

    for _ in range(10):
        watchdog.look()
        clock.now += 10

    assert (outcome.exits, outcome.dumps) == ([], 1)


def test_a_stage_that_only_loads_its_model_is_named_once_and_not_dumped(
    board: ProgressBoard, clock: Clock, outcome: Outcome, watchdog: Watchdog
) -> None:
    board.begin("embed")

    with capture_logs() as logs, board.loading("embed"):
        for _ in range(5):
            clock.now += 6
            watchdog.look()

    assert (outcome.exits, outcome.dumps) == ([], 0)
    assert logs == [{"event": "model still loading", "log_level": "info", "stages": ["embed"]}]


async def test_a_loop_that_runs_completes_its_heartbeat() -> None:
    board = ProgressBoard(standard_stages(60))
    watchdog = Watchdog(board, 5, interval_s=0.01)

    watchdog.start(asyncio.get_running_loop())
    for _ in range(100):
        await asyncio.sleep(0.01)
        if next(r for r in board.reports() if r.name == EVENT_LOOP).completions > 2:
            break
    await asyncio.to_thread(watchdog.stop)

    report = next(r for r in board.reports() if r.name == EVENT_LOOP)
    assert report.completions > 2
    assert report.in_flight == 0


async def test_a_blocked_loop_is_stuck_while_it_blocks() -> None:
    board = ProgressBoard(standard_stages(0.1))
    outcome = Outcome()
    watchdog = Watchdog(board, 60, interval_s=0.02, dump=outcome.dump, end_process=outcome.exits.append)

    watchdog.start(asyncio.get_running_loop())
    time.sleep(0.4)  # noqa: ASYNC251 - blocking the loop is the point
    blocked = board.stuck(vital=True)
    await asyncio.to_thread(watchdog.stop)

    assert blocked == (EVENT_LOOP,)


def test_a_real_process_with_a_hung_plan_exits_and_names_the_place() -> None:
    program = """
import asyncio, threading
from coatcheck.ops.progress import ProgressBoard, standard_stages
from coatcheck.ops.watchdog import Watchdog

board = ProgressBoard(standard_stages(0.2))

def hung_plan():
    with board.stage("plan"):
        threading.Event().wait()

async def main():
    Watchdog(board, 0.2, interval_s=0.05).start(asyncio.get_running_loop())
    await asyncio.to_thread(hung_plan)

asyncio.run(main())
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == EXIT_STUCK
    assert "hung_plan" in done.stderr
