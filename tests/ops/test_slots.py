"""Slots by turns: who asks seldom finds one, who asks alone has them all, who leaves holds nothing."""

from __future__ import annotations

import asyncio
from uuid import UUID

from coatcheck.ops.slots import RECENT_S, FairSlots

LOUD, QUIET = UUID(int=1), UUID(int=2)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Work:
    """Pieces that stay until they are let go, and what is being worked on."""

    def __init__(self, slots: FairSlots) -> None:
        self.slots = slots
        self.inside: list[UUID] = []
        self.order: list[UUID] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.leave = asyncio.Semaphore(0)

    async def piece(self, owner: UUID) -> None:
        async with self.slots.of(owner):
            self.inside.append(owner)
            self.order.append(owner)
            await self.leave.acquire()
            self.inside.remove(owner)

    async def ask(self, owner: UUID, pieces: int) -> None:
        self.tasks += [asyncio.create_task(self.piece(owner)) for _ in range(pieces)]
        await settle()

    async def end(self) -> None:
        for _ in self.tasks:
            self.leave.release()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_alone_an_owner_has_every_slot() -> None:
    work = Work(FairSlots(3))

    await work.ask(LOUD, 5)

    assert work.inside == [LOUD] * 3
    await work.end()
    assert work.order == [LOUD] * 5


async def test_who_asks_for_ten_leaves_a_slot_for_who_asked_of_late() -> None:
    clock = Clock()
    work = Work(FairSlots(2, clock))
    await work.ask(QUIET, 1)
    work.leave.release()
    await settle()

    await work.ask(LOUD, 10)
    assert work.inside == [LOUD]
    await work.ask(QUIET, 1)
    assert sorted(work.inside) == [LOUD, QUIET]

    await work.end()


async def test_a_share_that_nobody_asks_for_any_more_is_the_others() -> None:
    clock = Clock()
    work = Work(FairSlots(2, clock))
    await work.ask(QUIET, 1)
    work.leave.release()
    await settle()

    clock.now += RECENT_S + 1
    await work.ask(LOUD, 3)

    assert work.inside == [LOUD] * 2
    await work.end()


async def test_with_one_slot_owners_take_turns() -> None:
    work = Work(FairSlots(1))
    await work.ask(LOUD, 4)
    await work.ask(QUIET, 2)

    await work.end()

    assert work.order == [LOUD, QUIET, LOUD, QUIET, LOUD, LOUD]


async def test_who_leaves_while_waiting_holds_nobody_up() -> None:
    slots = FairSlots(1)
    work = Work(slots)
    await work.ask(LOUD, 3)

    work.tasks[1].cancel()
    await settle()
    await work.end()

    assert work.order == [LOUD] * 2
    async with asyncio.timeout(1), slots.of(QUIET):
        pass


async def test_a_slot_that_is_handed_over_to_somebody_who_leaves_goes_on_to_the_next() -> None:
    slots = FairSlots(1)
    work = Work(slots)
    await work.ask(LOUD, 3)

    work.leave.release()
    await asyncio.sleep(0)
    work.tasks[1].cancel()
    await settle()

    assert work.inside == [LOUD]
    await work.end()
    async with asyncio.timeout(1), slots.of(QUIET):
        pass
