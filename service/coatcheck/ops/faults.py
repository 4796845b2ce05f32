"""Crash points: named places where a fault test makes this very process die, fail, sleep, or wait for the test.

Nothing is armed unless somebody calls ``arm`` (app does, once, when COATCHECK_TEST_CRASH_POINT is set) or a test holds a
point; until then ``reach`` is one look at an empty dictionary.

The form is ``name=action[,name=action...]`` with the actions ``kill`` (SIGKILL to this process: nothing is flushed, as in a
crash), ``raise`` (InjectedFault) and ``sleep:SECONDS``; ``@N`` after the action means the Nth reach alone.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

_FORM = re.compile(r"(?P<name>[a-z][a-z0-9-]*)=(?:(?P<action>kill|raise)|sleep:(?P<seconds>\d+(?:\.\d+)?))(?:@(?P<nth>[1-9]\d*))?")


class InjectedFault(Exception):
    """What ``raise`` raises: no error of ours, so that nothing on the way expects it."""


@dataclass(slots=True)
class _Armed:
    name: str
    action: str
    """``kill``, ``raise`` or ``sleep``."""
    seconds: float
    nth: int | None
    reached: int = 0


class Hold:
    """A point at which the test has arrivals wait. Works for one event loop, where the test runs too."""

    def __init__(self, *, first_alone: bool = False) -> None:
        self._first_alone = first_alone
        self._arrived = asyncio.Condition()
        self._released = asyncio.Event()
        self.arrivals = 0

    async def reached(self, timeout_s: float = 10, *, arrivals: int = 1) -> None:
        """Returns once so many have come to the point. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s), self._arrived:
            await self._arrived.wait_for(lambda: self.arrivals >= arrivals)

    def release(self) -> None:
        """Lets whoever waits go on; later arrivals pass."""
        self._released.set()

    async def arrive(self) -> None:
        async with self._arrived:
            self.arrivals += 1
            is_first = self.arrivals == 1
            self._arrived.notify_all()
        if is_first or not self._first_alone:
            await self._released.wait()


_lock = threading.Lock()
_armed: dict[str, _Armed] = {}
_holds: dict[str, Hold] = {}


def arm(form: str) -> None:
    """Arms every point that the form names. Raises ValueError when the form is not one."""
    points = []
    for part in form.split(","):
        match = _FORM.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"not a crash point: {part.strip()!r}; write name=kill, name=raise or name=sleep:SECONDS, then @N")
        seconds, nth = match["seconds"], match["nth"]
        points.append(_Armed(match["name"], match["action"] or "sleep", float(seconds or 0), int(nth) if nth else None))
    with _lock:
        _armed.update({point.name: point for point in points})


def disarm() -> None:
    """Takes every armed point back; what is held stays held until its test lets it go."""
    with _lock:
        _armed.clear()


def reach(name: str) -> None:
    """Says that this point of the code is reached. Costs nothing and does nothing unless the point is armed."""
    if not _armed:
        return
    point = _due(name)
    if point is not None and point.action == "sleep":
        time.sleep(point.seconds)
    elif point is not None:
        _strike(point)


async def reach_async(name: str) -> None:
    """As ``reach``, without blocking the loop; and a point that a test can hold."""
    if not _armed and not _holds:
        return
    hold = _holds.get(name)
    if hold is not None:
        await hold.arrive()
    point = _due(name)
    if point is not None and point.action == "sleep":
        await asyncio.sleep(point.seconds)
    elif point is not None:
        _strike(point)


@asynccontextmanager
async def held(name: str, *, first_alone: bool = False) -> AsyncIterator[Hold]:
    """For a test of what happens meanwhile: arrivals at ``reach_async(name)`` wait until ``release`` or the block's end.

    ``first_alone``: only the first of them; who comes later overtakes it.
    """
    if name in _holds:
        raise ValueError(f"the point {name} is held already")
    hold = _holds[name] = Hold(first_alone=first_alone)
    try:
        yield hold
    finally:
        del _holds[name]
        hold.release()


def _due(name: str) -> _Armed | None:
    with _lock:
        point = _armed.get(name)
        if point is None:
            return None
        point.reached += 1
        return point if point.nth in (None, point.reached) else None


def _strike(point: _Armed) -> None:
    if point.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise InjectedFault(f"injected at {point.name}")
