"""Crash points do nothing until armed, and then exactly what they were armed with."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from coatcheck.ops import faults


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    faults.disarm()


async def test_an_unarmed_point_does_nothing() -> None:
    faults.reach("after-persist")
    await faults.reach_async("after-persist")


async def test_raise_raises_what_nobody_expects() -> None:
    faults.arm("after-persist=raise")

    faults.reach("before-persist")
    with pytest.raises(faults.InjectedFault, match="after-persist"):
        faults.reach("after-persist")
    with pytest.raises(faults.InjectedFault):
        await faults.reach_async("after-persist")


def test_the_nth_reach_alone_strikes() -> None:
    faults.arm("before-upsert=raise@3")

    faults.reach("before-upsert")
    faults.reach("before-upsert")
    with pytest.raises(faults.InjectedFault):
        faults.reach("before-upsert")
    faults.reach("before-upsert")


async def test_sleep_sleeps_and_leaves_the_loop_free() -> None:
    faults.arm("here=sleep:0.05, there=sleep:0.05@2")
    started = time.monotonic()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticker = asyncio.create_task(tick())
    await faults.reach_async("here")
    ticker.cancel()

    assert time.monotonic() - started >= 0.05
    assert ticks > 1


def test_kill_is_a_crash_without_any_clean_up() -> None:
    program = """
import atexit
from coatcheck.ops import faults
atexit.register(lambda: print("cleaned up", flush=True))
faults.arm("after-upsert=kill")
faults.reach("after-upsert")
print("went on", flush=True)
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == -signal.SIGKILL
    assert done.stdout == ""


@pytest.mark.parametrize("form", ["", "after-persist", "after-persist=explode", "x=sleep", "x=raise@0", "x=kill,,y=kill", "X=kill"])
def test_a_form_that_is_none_is_refused_whole(form: str) -> None:
    with pytest.raises(ValueError, match="not a crash point"):
        faults.arm("fine=raise," + form)

    faults.reach("fine")


async def test_a_held_point_waits_for_the_test() -> None:
    passed: list[str] = []

    async def work(name: str) -> None:
        await faults.reach_async("before-acknowledge")
        passed.append(name)

    async with faults.held("before-acknowledge") as hold:
        first = asyncio.create_task(work("first"))
        await hold.reached()
        meanwhile = list(passed)
        hold.release()
        await first
    await work("second")

    assert meanwhile == []
    assert passed == ["first", "second"]
    assert hold.arrivals == 1


async def test_leaving_the_block_lets_the_held_go_on() -> None:
    async with faults.held("here") as hold:
        task = asyncio.create_task(faults.reach_async("here"))
        await hold.reached()

    await asyncio.wait_for(task, 1)
