"""Slots by turns: who asks seldom finds one, who asks alone has them all, who leaves holds nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from uuid import UUID

import pytest

from coatcheck.ops.slots import FORGOTTEN_S, HALF_LIFE_S, PATIENCE_S, RECENT_S, SOON_S, YOUNG_S, FairSlots, Had, Slot

LOUD, QUIET = UUID(int=1), UUID(int=2)


class Clock:
    """Goes as clocks do, and is put forward."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


class Standing(Clock):
    """Goes only as far as it is put forward: a machine that is busy elsewhere makes no difference."""

    def __call__(self) -> float:
        return self.ahead


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

    clock.ahead += RECENT_S + 1
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


async def test_nothing_is_kept_of_who_left_while_waiting() -> None:
    slots = FairSlots(1)
    work = Work(slots)
    await work.ask(LOUD, 100)

    for task in work.tasks[1:]:
        task.cancel()
    await settle()

    assert list(slots._waiting) == []
    await work.end()


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


async def have(clock: Clock, work: Work, owner: UUID, seconds: float) -> None:
    async with work.slots.of(owner):
        clock.ahead += seconds


async def where_loud_has_had(seconds: float, clock: Clock) -> Work:
    work = Work(FairSlots(2, clock))
    await have(clock, work, LOUD, seconds)
    return work


async def test_who_has_had_much_gives_way_to_the_young_piece_of_who_has_had_little() -> None:
    clock = Clock()
    work = await where_loud_has_had(3, clock)

    await work.ask(QUIET, 1)
    await work.ask(LOUD, 1)
    assert work.inside == [QUIET]
    work.leave.release()
    clock.ahead += SOON_S
    await asyncio.sleep(2 * SOON_S)

    assert work.inside == [LOUD]
    await work.end()


async def test_a_slot_is_kept_free_for_a_moment_and_not_for_as_long_as_a_piece_would_be_young() -> None:
    work = await where_loud_has_had(3, Clock())
    await asyncio.sleep(2 * SOON_S)
    await work.ask(QUIET, 1)
    await work.ask(LOUD, 1)

    work.leave.release()
    await asyncio.sleep(YOUNG_S / 2)

    assert work.inside == [LOUD]
    await work.end()


async def test_who_comes_back_at_once_finds_nobody_who_has_had_much_more_at_work() -> None:
    clock = Clock()
    work = await where_loud_has_had(3, clock)
    await work.ask(QUIET, 1)
    await work.ask(LOUD, 1)

    work.leave.release()
    clock.ahead += SOON_S / 2
    await settle()
    assert work.inside == []
    await work.ask(QUIET, 1)
    clock.ahead += SOON_S
    await asyncio.sleep(2 * SOON_S)

    assert work.inside == [QUIET]
    await work.end()


async def test_a_piece_that_is_not_young_any_more_keeps_nobody_waiting() -> None:
    clock = Clock()
    work = await where_loud_has_had(3, clock)

    await work.ask(QUIET, 1)
    await work.ask(LOUD, 1)
    clock.ahead += YOUNG_S
    await asyncio.sleep(2 * YOUNG_S)  # nobody asks and nobody leaves: the slots look again by themselves

    assert work.inside == [QUIET, LOUD]
    await work.end()


async def test_who_comes_back_at_once_again_and_again_for_nothing_keeps_nobody_from_working() -> None:
    clock = Standing()
    work = await where_loud_has_had(3, clock)
    await have(clock, work, QUIET, 0)
    await work.ask(LOUD, 1)
    assert work.inside == []

    waited_s = 0.0
    while not work.inside and waited_s < 2 * HALF_LIFE_S:
        clock.ahead += SOON_S / 2
        waited_s += SOON_S / 2
        await have(clock, work, QUIET, 0)
        await settle()

    assert work.inside == [LOUD]
    assert waited_s < HALF_LIFE_S
    await work.end()


async def test_ever_new_owners_with_one_cheap_piece_each_leave_time_to_who_has_had_much() -> None:
    clock = Standing()
    work = await where_loud_has_had(60, clock)
    step_s = SOON_S / 2
    worked, longest_s, waited_s = 0, 0.0, 0.0
    await have(clock, work, UUID(int=1_000), 0)
    await work.ask(LOUD, 2_000)

    for number in range(round(6 * PATIENCE_S / step_s)):
        clock.ahead += step_s
        waited_s = 0.0 if work.inside else waited_s + step_s
        longest_s = max(longest_s, waited_s)
        if work.inside:
            worked += 1
            work.leave.release()
        await have(clock, work, UUID(int=1_001 + number), 0)
        await asyncio.sleep(0)

    assert longest_s < PATIENCE_S + 3 * step_s
    assert worked * step_s > PATIENCE_S
    for task in work.tasks:
        task.cancel()
    await asyncio.gather(*work.tasks, return_exceptions=True)


async def test_equals_do_not_give_way_to_one_another() -> None:
    clock = Clock()
    work = await where_loud_has_had(3, clock)
    await have(clock, work, QUIET, 2)

    await work.ask(QUIET, 1)
    await work.ask(LOUD, 1)

    assert work.inside == [QUIET, LOUD]
    await work.end()


def test_what_an_owner_has_had_fades_and_is_forgotten() -> None:
    had = Had()
    had.add(LOUD, 4, now=0)

    assert had.of(LOUD, HALF_LIFE_S) == 2
    assert had.of(QUIET, HALF_LIFE_S) == 0
    had.add(QUIET, 1, now=HALF_LIFE_S * 13)
    assert had.of(LOUD, HALF_LIFE_S * 13) == 0
    assert FORGOTTEN_S > 4 / 2**13


async def test_a_thread_that_steps_aside_lets_others_in_and_goes_on_in_a_slot() -> None:
    slots = FairSlots(1)
    aside, go_on = threading.Event(), threading.Event()

    def planned(slot: Slot) -> None:
        with slot.aside():
            aside.set()
            assert go_on.wait(20)

    async with slots.of(LOUD) as slot:
        thread = asyncio.create_task(asyncio.to_thread(planned, slot))
        async with asyncio.timeout(10), slots.of(QUIET):
            assert await asyncio.to_thread(aside.wait, 10)
            go_on.set()
            await asyncio.sleep(0.05)
            assert not thread.done()
        await thread
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), slots.of(QUIET):
                pass
    async with asyncio.timeout(1), slots.of(QUIET):
        pass


async def test_a_slot_that_was_closed_meanwhile_is_not_taken_again() -> None:
    slots = FairSlots(1)
    go_on = threading.Event()

    def planned(slot: Slot) -> None:
        with slot.aside():
            assert go_on.wait(20)

    async with slots.of(LOUD) as slot:
        thread = asyncio.create_task(asyncio.to_thread(planned, slot))
        await asyncio.sleep(0.05)
    go_on.set()
    await thread

    async with asyncio.timeout(1), slots.of(QUIET):
        pass


async def test_a_thread_holds_its_slot_to_its_end_although_whoever_asked_has_left() -> None:
    slots = FairSlots(1)
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert go_on.wait(20)

    asked = asyncio.create_task(slots.in_thread(LOUD, work))
    assert await asyncio.to_thread(begun.wait, 10)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), slots.of(QUIET):
            pass
    go_on.set()

    async with asyncio.timeout(5), slots.of(QUIET):
        pass


async def test_who_leaves_before_its_thread_has_begun_takes_the_piece_along() -> None:
    slots, done = FairSlots(1), list[UUID]()
    async with slots.of(QUIET):
        asked = asyncio.create_task(slots.in_thread(LOUD, lambda: done.append(LOUD)))
        await settle()
        asked.cancel()
        await settle()

    assert await slots.in_thread(QUIET, lambda: 7) == 7
    assert done == []


async def test_what_a_thread_in_a_slot_raises_is_its_callers() -> None:
    slots = FairSlots(1)

    def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await slots.in_thread(LOUD, fails)
    assert await slots.in_thread(LOUD, lambda: 7) == 7
