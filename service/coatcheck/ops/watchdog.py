"""The watchdog: a thread that ends a process whose vital stage is stuck, and reports an optional one that is.

A stuck vital stage fails ``/livez`` at once (the probe reads the board) and every thread's stack goes to stderr; when it is still
stuck after the grace, the stacks go there again (the same place twice is where it stands) and the process exits, so that whoever
supervises it starts another. A stuck optional stage,
whose callers were answered at their deadlines, is dumped once and never ends the process; one whose model is only being loaded is
named in the log and no more. Stacks name files and functions, never values.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

import structlog

from coatcheck.ops.progress import EVENT_LOOP, Piece, ProgressBoard

EXIT_STUCK = 70
"""The exit status of a process that could make no progress (EX_SOFTWARE of sysexits.h)."""

log = structlog.get_logger(__name__)


def dump_stacks() -> None:
    """Every thread's stack to the process's real stderr."""
    faulthandler.dump_traceback(file=sys.__stderr__ or 2, all_threads=True)


def exit_at_once(status: int) -> NoReturn:
    """Ends the process without waiting for threads: one of them is stuck."""
    os._exit(status)


class Watchdog:
    """Looks at the board every ``interval_s`` seconds from a thread of its own, between ``start`` and ``stop``."""

    def __init__(
        self,
        board: ProgressBoard,
        grace_s: float,
        *,
        interval_s: float = 0.5,
        monotonic: Callable[[], float] = time.monotonic,
        dump: Callable[[], None] = dump_stacks,
        end_process: Callable[[int], object] = exit_at_once,
    ) -> None:
        self._board = board
        self._grace_s = grace_s
        self._interval_s = interval_s
        self._monotonic = monotonic
        self._dump = dump
        self._end_process = end_process
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beat: Piece | None = None
        self._stuck_since: float | None = None
        self._reported: frozenset[str] = frozenset()
        self._loading: frozenset[str] = frozenset()

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Watches the board, and the loop, where the host has one, as its vital stage ``event-loop``."""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=self._interval_s + 5)
        self._end_beat()

    def look(self) -> None:
        """One look at the board."""
        self._look_at_optional(frozenset(self._board.stuck(vital=False)))
        self._look_at_loading(frozenset(self._board.loading_long()))
        stuck = self._board.stuck(vital=True)
        now = self._monotonic()
        if not stuck:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
            log.error("vital stage stuck", stages=list(stuck))
            self._dump()
        elif now - self._stuck_since >= self._grace_s:
            log.error("exiting: vital stage stuck beyond the grace", stages=list(stuck))
            self._dump()
            self._end_process(EXIT_STUCK)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            self._beat_loop()
            self.look()

    def _look_at_optional(self, stuck: frozenset[str]) -> None:
        fresh = stuck - self._reported
        self._reported = stuck
        if fresh:
            log.warning("optional stage stuck", stages=sorted(fresh))
            self._dump()

    def _look_at_loading(self, loading: frozenset[str]) -> None:
        fresh = loading - self._loading
        self._loading = loading
        if fresh:
            log.info("model still loading", stages=sorted(fresh))

    def _beat_loop(self) -> None:
        """Asks the loop to run a callback; the piece stays in flight until it has."""
        if self._loop is None or self._beat is not None:
            return
        self._beat = self._board.begin(EVENT_LOOP)
        try:
            self._loop.call_soon_threadsafe(self._end_beat)
        except RuntimeError:  # the loop is closed: there is nothing left to watch
            self._end_beat()
            self._loop = None

    def _end_beat(self) -> None:
        beat, self._beat = self._beat, None
        if beat is not None:
            beat.done()
