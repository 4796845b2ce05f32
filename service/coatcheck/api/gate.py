"""The gate: how many requests are being worked on, and whether any more are let in."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from coatcheck.domain.errors import Draining, Overloaded
from coatcheck.ops.slots import FairSlots, Recent

CROWDED = 0.75
"""From this part on, room inside is for tenants that have less than their share of it."""
FOR_NEWCOMERS = 1 / 8
"""What no tenant has of it, not even alone: of one that had it all nobody would get in to ask for a share."""

BODIES_AT_ONCE = 2
"""Large bodies that are parsed at the same time; tenants take turns, however many of them each sends."""


class Gate:
    """Admission ahead of any work. One for each process, on its event loop. No tenant can keep the others out."""

    def __init__(self, max_in_flight: int) -> None:
        self._max_in_flight = max_in_flight
        self._for_newcomers = int(FOR_NEWCOMERS * max_in_flight)
        self._empty = asyncio.Event()
        self._empty.set()
        self._recent = Recent()
        self.parsing = FairSlots(BODIES_AT_ONCE)
        self._inside: Counter[UUID] = Counter()
        self.in_flight = 0
        self.draining = False
        self.closed_at = 0.0
        """When ``drain`` was first called, by the monotonic clock."""

    def check_open(self) -> None:
        """Raises Draining once the process is going down."""
        if self.draining:
            raise Draining

    @contextmanager
    def pass_through(self, tenant_id: UUID) -> Iterator[None]:
        """One request's stay. Raises Draining, and Overloaded where as many as are allowed are inside."""
        self.check_open()
        self._recent.note(tenant_id)
        if self.in_flight >= self._max_in_flight:
            raise Overloaded("As many requests as this service takes on are being worked on.")
        share = min(self._recent.share(tenant_id, self._max_in_flight), self._max_in_flight - self._for_newcomers)
        if self.in_flight >= CROWDED * self._max_in_flight and self._inside[tenant_id] >= share:
            raise Overloaded("As many requests of this tenant as leave room for others are being worked on.")
        self.in_flight += 1
        self._inside[tenant_id] += 1
        self._empty.clear()
        try:
            yield
        finally:
            self.in_flight -= 1
            self._inside[tenant_id] -= 1
            if not self._inside[tenant_id]:
                del self._inside[tenant_id]
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
