"""Slots for work that needs a core: few at a time, and tenants take turns for them.

While others have asked within the last seconds, an owner holds its share of the slots at most, so that who asks seldom finds one
free; alone it has them all. And while a piece of somebody who has had little of late is young, nobody who has had much more is
handed another: those who hold slots share the cores too, and who asks seldom is to wait little. Time in which a slot stayed free
for an owner counts as had: coming back at once, again and again, for next to nothing keeps nobody from working.
Whoever waits is served in the order of ``Turns``: one between two of anybody else's.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar
from uuid import UUID

from coatcheck.ops.turns import Turns

T = TypeVar("T")

RECENT_S = 10.0
"""An owner that has asked for nothing for so long leaves its share to the others."""
HALF_LIFE_S = 2.0
"""After which half of what an owner has had is forgotten."""
MUCH_MORE, SLACK_S = 1.5, 0.05
"""So many times what the other has had, and so many seconds beyond it: equals never give way to one another."""
FORGOTTEN_S = 0.001
LOOK_S = 1.0
"""How often a thread that waits for its slot looks whether the loop that hands it out has gone."""
SOON_S = 0.012
"""Within it whoever has ended a piece comes with the next one of the same request, and is not to find the other at work."""
YOUNG_S = 0.1
"""A piece that takes longer is no reason any more to keep others waiting, whatever it waits for itself."""
PATIENCE_S = 1.0
"""Who has given way for so long gives way to nobody for as long again, however many there are that have had less."""


class Recent:
    """Which owners have asked for something of late, and so what one of them may have of a whole."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: dict[UUID, float] = {}

    def note(self, owner: UUID) -> None:
        now = self._now()
        self._seen.pop(owner, None)
        self._seen[owner] = now
        self._forget(now)

    def share(self, owner: UUID, whole: int) -> int:
        """The owner's part, at least one; the whole where nobody else asks."""
        self._forget(self._now())
        others = len(self._seen) - (owner in self._seen)
        return max(1, whole // (1 + others))

    def _forget(self, now: float) -> None:
        """Those who asked last too long ago; who asked last of all stands last."""
        while self._seen and now - self._seen[first := next(iter(self._seen))] > RECENT_S:
            del self._seen[first]


class Had:
    """How many seconds owners have had slots of late; what is long ago counts less."""

    def __init__(self) -> None:
        self._had: dict[UUID, tuple[float, float]] = {}

    def add(self, owner: UUID, seconds: float, now: float) -> None:
        had = self.of(owner, now) + seconds
        self._had.pop(owner, None)
        self._had[owner] = had, now
        # Those who had something last of all stand last: of a thousand owners only the first ones are looked at each time.
        while self._had and self.of(first := next(iter(self._had)), now) <= FORGOTTEN_S:
            del self._had[first]

    def of(self, owner: UUID, now: float) -> float:
        seconds, at = self._had.get(owner, (0.0, now))
        return seconds * math.exp2((at - now) / HALF_LIFE_S)


class FairSlots:
    """So many slots, on one event loop."""

    def __init__(self, slots: int, now: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._now = now
        self._recent = Recent(now)
        self._had = Had()
        self._held: dict[UUID, list[float]] = {}
        """By owner, when each of its pieces began."""
        self._left: dict[UUID, float] = {}
        """By owner that holds none, when its last piece ended."""
        self._kept_free_for: set[UUID] = set()
        """Of those who left, for whom somebody has been passed over."""
        self._gave_way_since: dict[UUID, float] = {}
        """By owner that waits, when it was first passed over for somebody who has had less; kept on for who lost its patience."""
        self._waiting = Turns[tuple[UUID, asyncio.Future[float]]]()
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def of(self, owner: UUID) -> AsyncIterator[Slot]:
        """One slot, once it is the owner's turn."""
        slot = Slot(self, owner)
        await slot.take()
        try:
            yield slot
        finally:
            slot.close()

    async def in_thread(self, owner: UUID, work: Callable[[], T]) -> T:
        """Works in a thread, in a slot of the owner's. Who leaves while the piece waits takes it along.

        Once it has begun, the slot is held until the thread is done: who leaves early, again and again, would else have as many
        threads at work as it sends requests.
        """
        begun = False

        async def hold() -> T:
            nonlocal begun
            async with self.of(owner):
                begun = True
                return await asyncio.to_thread(work)

        task = asyncio.create_task(hold())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not begun:
                task.cancel()
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody asks for it any more
            raise

    async def take(self, owner: UUID) -> float:
        """When the owner's piece began, once it has a slot; ``give_back`` wants to know it."""
        self._recent.note(owner)
        self._charge_what_was_kept_free(owner)
        freed: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        piece = (owner, freed)
        self._waiting.put(owner, piece)
        self._hand_out()
        try:
            return await freed
        except asyncio.CancelledError:
            if freed.done() and not freed.cancelled():  # it was handed over in the very moment of the cancellation
                self.give_back(owner, freed.result())
            else:
                self._waiting.discard(owner, piece)
            raise

    def give_back(self, owner: UUID, began: float) -> None:
        now = self._now()
        self._had.add(owner, now - began, now)
        self._held[owner].remove(began)
        if not self._held[owner]:
            del self._held[owner]
            self._left[owner] = now
        self._hand_out()

    def _hand_out(self) -> None:
        """Gives free slots to those whose turn it is, who hold less than their share and have to give way to nobody."""
        now = self._now()
        self._left = {owner: at for owner, at in self._left.items() if now - at < SOON_S and owner not in self._held}
        self._kept_free_for &= self._left.keys()
        self._gave_way_since = {one: since for one, since in self._gave_way_since.items() if self._still_counts(one, now - since)}
        gave_way = False

        def may(owner: UUID) -> bool:
            nonlocal gave_way
            if len(self._held.get(owner, ())) >= self._recent.share(owner, self._slots):
                return False
            gives_way = self._gives_way(owner, now) and now - self._gave_way_since.setdefault(owner, now) < PATIENCE_S
            gave_way |= gives_way
            return not gives_way

        while sum(map(len, self._held.values())) < self._slots and (next_one := self._waiting.take(may)) is not None:
            owner, freed = next_one
            if now - self._gave_way_since.get(owner, now) < PATIENCE_S:
                self._gave_way_since.pop(owner, None)
            if not freed.done():  # whoever waited has not left
                self._held.setdefault(owner, []).append(now)
                freed.set_result(now)
        if gave_way:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(SOON_S if self._left else YOUNG_S, self._on_timer)

    def _gives_way(self, owner: UUID, now: float) -> bool:
        """To somebody who has had much less, and whose piece is young or who will be back at once with the next one."""
        had = self._had.of(owner, now)
        young = [other for other, began in self._held.items() if max(began) > now - YOUNG_S]
        others = {
            other for other in (*young, *self._left) if other != owner and had > MUCH_MORE * self._had.of(other, now) + SLACK_S
        }
        self._kept_free_for |= others & self._left.keys()
        return bool(others)

    def _still_counts(self, owner: UUID, gave_way_s: float) -> bool:
        return self._waiting.waits(owner) if gave_way_s < PATIENCE_S else gave_way_s < 2 * PATIENCE_S

    def _charge_what_was_kept_free(self, owner: UUID) -> None:
        """From when the owner left until it is back; who does not come back soon keeps nothing free any more."""
        if owner in self._kept_free_for:
            now = self._now()
            self._had.add(owner, min(now - self._left[owner], SOON_S), now)
            self._kept_free_for.discard(owner)

    def _on_timer(self) -> None:
        self._timer = None
        self._hand_out()


class Slot:
    """One owner's slot, from ``FairSlots.of``."""

    def __init__(self, slots: FairSlots, owner: UUID) -> None:
        self._slots = slots
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._began: float | None = None
        self._closed = False

    async def take(self) -> None:
        began = await self._slots.take(self._owner)
        if self._closed:
            self._slots.give_back(self._owner, began)
        else:
            self._began = began

    def give_back(self) -> None:
        began, self._began = self._began, None
        if began is not None:
            self._slots.give_back(self._owner, began)

    def close(self) -> None:
        """Gives the slot back, and lets no thread take it again that is still aside."""
        self._closed = True
        self.give_back()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """For a thread that works in this slot: gives it to others while the thread waits for what needs no core of theirs."""
        self._loop.call_soon_threadsafe(self.give_back)
        try:
            yield
        finally:
            taken = asyncio.run_coroutine_threadsafe(self._take_again(), self._loop)
            while not self._loop.is_closed():
                try:
                    taken.result(LOOK_S)
                    break
                except TimeoutError:
                    continue

    async def _take_again(self) -> None:
        if not self._closed:
            await self.take()
