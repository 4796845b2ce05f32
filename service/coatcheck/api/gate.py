"""The gate: how many requests are being worked on, and whether any more are let in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from coatcheck.domain.errors import Draining, Overloaded


class Gate:
    """Admission ahead of any work. One for each process, on its event loop."""

    def __init__(self, max_in_flight: int) -> None:
        self._max_in_flight = max_in_flight
        self._empty = asyncio.Event()
        self._empty.set()
        self.in_flight = 0
        self.draining = False
        self.closed_at = 0.0
        """When ``drain`` was first called, by the monotonic clock."""

    def check_open(self) -> None:
        """Raises Draining once the process is going down."""
        if self.draining:
            raise Draining

    @contextmanager
    def pass_through(self) -> Iterator[None]:
        """One request's stay. Raises Draining, and Overloaded where as many as are allowed are inside."""
        self.check_open()
        if self.in_flight >= self._max_in_flight:
            raise Overloaded("As many requests as this service takes on are being worked on.")
        self.in_flight += 1
        self._empty.clear()
        try:
            yield
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self._empty.set()

    def drain(self) -> None:
        """Lets nobody in any more; readiness goes off with it."""
        if not self.draining:
            self.closed_at = time.monotonic()
        self.draining = True

    async def wait_empty(self, timeout_s: float) -> bool:
        """Whether everybody inside has left within the time."""
        try:
            await asyncio.wait_for(self._empty.wait(), timeout_s)
        except TimeoutError:
            return False
        return True
