"""Slots for work that needs a core: few at a time, and tenants take turns for them.

While others have asked within the last seconds, an owner holds its share of the slots at most, so that who asks seldom finds one
free; alone it has them all. Whoever waits is served in the order of ``Turns``: one between two of anybody else's.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

from coatcheck.ops.turns import Turns

RECENT_S = 10.0
"""An owner that has asked for nothing for so long leaves its share to the others."""


class Recent:
    """Which owners have asked for something of late, and so what one of them may have of a whole."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: dict[UUID, float] = {}

    def note(self, owner: UUID) -> None:
        now = self._now()
        self._seen.pop(owner, None)
        self._seen[owner] = now
        while (first := next(iter(self._seen))) != owner and now - self._seen[first] > RECENT_S:
            del self._seen[first]

    def share(self, owner: UUID, whole: int) -> int:
        """The owner's part, at least one; the whole where nobody else asks."""
        now = self._now()
        others = sum(1 for one, at in self._seen.items() if one != owner and now - at <= RECENT_S)
        return max(1, whole // (1 + others))


class FairSlots:
    """So many slots, on one event loop."""

    def __init__(self, slots: int, now: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._recent = Recent(now)
        self._turns = Turns()
        self._numbers = itertools.count()
        self._held: Counter[UUID] = Counter()
        self._waiting: list[tuple[int, int, UUID, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def of(self, owner: UUID) -> AsyncIterator[None]:
        """One slot, once it is the owner's turn."""
        self._recent.note(owner)
        freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self._turns.take(owner), next(self._numbers), owner, freed))
        self._hand_out()
        try:
            await freed
        except asyncio.CancelledError:
            if freed.done() and not freed.cancelled():  # it was handed over in the very moment of the cancellation
                self._give_back(owner)
            raise
        try:
            yield
        finally:
            self._give_back(owner)

    def _give_back(self, owner: UUID) -> None:
        self._held[owner] -= 1
        if not self._held[owner]:
            del self._held[owner]
        self._hand_out()

    def _hand_out(self) -> None:
        """Gives free slots to those whose turn it is and who hold less than their share."""
        passed: list[tuple[int, int, UUID, asyncio.Future[None]]] = []
        while self._waiting and self._held.total() < self._slots:
            turn, number, owner, freed = heapq.heappop(self._waiting)
            if freed.done():  # whoever waited has left
                continue
            if self._held[owner] >= self._recent.share(owner, self._slots):
                passed.append((turn, number, owner, freed))
                continue
            self._held[owner] += 1
            self._turns.begin(turn)
            freed.set_result(None)
        for one in passed:
            heapq.heappush(self._waiting, one)
