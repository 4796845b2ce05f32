"""The end of an app, all of it within one grace that begins when its gate is closed.

    nobody new -> whoever is inside, and the work that outlives its request, may finish -> what has not is cancelled: its lease is
    given back and its caller told to come again -> the index written, the database stopped -> the models let go of their batches

The last steps have a share of the grace to themselves. A thread that computes inside a model hears of none of this: it is left
behind, since nobody waits for what it computes and all that stands is in the database.
"""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from coatcheck.ops import watchdog

if TYPE_CHECKING:
    from coatcheck.app.compose import App

CLOSING_SHARE = 0.3
"""Of the grace, for what comes after the work: without models it takes a second."""
MOST_FOR_CLOSING_S = 10.0
LAST_RESORT = 0.95
"""Of the grace: then the process is ended, whatever is left. Whoever supervises it would do so at its whole."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Shares:
    """What the grace is divided into, in seconds."""

    grace_s: float

    @property
    def work_s(self) -> float:
        """For the work under way, to finish."""
        return self.grace_s - self._closing_s

    @property
    def answers_s(self) -> float:
        """For whoever was given up, to say so."""
        return self._closing_s / 3

    @property
    def models_s(self) -> float:
        """For the batches that models are at, after everything else is closed."""
        return self._closing_s / 3

    @property
    def _closing_s(self) -> float:
        return min(CLOSING_SHARE * self.grace_s, MOST_FOR_CLOSING_S)


async def finish(app: App) -> None:
    """Closes the gate and lets the work under way finish; what has not by the end of its share is given back."""
    app.parts.state.draining = True
    app.gate.drain()
    app.use_cases.reconciler.stop()
    compact, answers_s = app.use_cases.compact, _shares(app).answers_s
    await asyncio.gather(app.gate.wait_empty(_left_s(app)), compact.drain(_left_s(app), answers_s))
    await compact.drain(_left_s(app), answers_s)  # what was begun meanwhile by a request that was inside


async def stop(app: App, background: list[asyncio.Task[None]]) -> None:
    """``finish``, and then the work in the background; the first of it is the walk over the outbox."""
    await finish(app)
    answers_s = _shares(app).answers_s
    await app.use_cases.jobs.stop(answers_s)
    _, late = await asyncio.wait({background[0]}, timeout=_left_s(app))
    ending = [*late, *background[1:]]
    for task in ending:
        task.cancel()
    if ending:
        await asyncio.wait(ending, timeout=answers_s)
    app.parts.planning.close()


class LastResort:
    """Ends the process shortly before its grace does, from a thread of its own: the loop may be what stands still."""

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """From now on the grace runs. Does nothing the second time."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._wait, name="last-resort", daemon=True)
            self._thread.start()

    def closed(self) -> None:
        """Everything is written and closed.

        What still runs inside a model computes for nobody, and the interpreter would abort under it: such a process ends here.
        """
        self._closed.set()
        if any(thread.daemon and thread is not self._thread for thread in threading.enumerate()):
            watchdog.exit_at_once(0)

    def _wait(self) -> None:
        time.sleep(LAST_RESORT * self._grace_s)
        if self._closed.is_set():
            watchdog.exit_at_once(0)
        log.error("exiting: not stopped within the grace", grace_s=self._grace_s)
        watchdog.dump_stacks()
        watchdog.exit_at_once(watchdog.EXIT_STUCK)


def _shares(app: App) -> Shares:
    return Shares(app.parts.settings.drain_grace_s)


def _left_s(app: App) -> float:
    """Of the time that the work has."""
    return max(0.0, app.gate.closed_at + _shares(app).work_s - time.monotonic())
