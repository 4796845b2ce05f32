"""The order in which owners get their turns."""

from __future__ import annotations

from uuid import UUID

from coatcheck.ops.turns import Turns

BUSY, QUIET, LATE = UUID(int=1), UUID(int=2), UUID(int=3)


def served(turns: Turns[UUID], asked: list[UUID]) -> list[UUID]:
    for owner in asked:
        turns.put(owner, owner)
    return [piece for _ in asked if (piece := turns.take()) is not None]


def test_equals_alternate() -> None:
    order = served(Turns(), [BUSY] * 3 + [QUIET] * 3)

    assert order == [BUSY, QUIET] * 3


def test_who_has_much_less_waiting_gets_two_turns_to_the_others_one() -> None:
    turns = Turns[UUID]()

    order = served(turns, [BUSY] * 10 + [QUIET] * 3)

    assert order == [BUSY, QUIET, QUIET, BUSY, QUIET] + [BUSY] * 8


def test_who_has_much_waiting_is_never_kept_from_its_third() -> None:
    turns = Turns[UUID]()
    for _ in range(40):
        turns.put(BUSY, BUSY)
    order: list[UUID | None] = [QUIET]
    for _ in range(60):
        if order[-1] == QUIET:
            turns.put(QUIET, QUIET)
        order.append(turns.take())

    assert order.count(BUSY) == 20


def test_who_was_idle_saves_nothing_up() -> None:
    turns = Turns[UUID]()
    served(turns, [BUSY] * 100)

    order = served(turns, [BUSY] * 3 + [LATE] * 6)

    assert order[:6].count(BUSY) == 3


def test_who_comes_again_and_again_with_one_piece_gets_no_more_than_its_turns() -> None:
    turns = Turns[UUID]()
    order: list[UUID | None] = [BUSY, QUIET]
    for _ in range(20):
        for owner in set(order[-1:]) if len(order) > 2 else (BUSY, QUIET):
            assert owner is not None
            turns.put(owner, owner)
        order.append(turns.take())

    assert order[2:].count(BUSY) == 10


def test_who_may_not_is_passed_over_and_keeps_its_turn() -> None:
    turns = Turns[UUID]()
    for owner in (BUSY, QUIET, QUIET, QUIET):
        turns.put(owner, owner)

    passed = [turns.take(lambda owner: owner != BUSY) for _ in range(2)]

    assert passed == [QUIET, QUIET]
    assert turns.take(lambda owner: False) is None
    assert [turns.take(), turns.take(), turns.take()] == [BUSY, QUIET, None]


def test_who_was_passed_over_again_and_again_saves_nothing_up() -> None:
    turns = Turns[UUID]()
    for _ in range(30):
        turns.put(QUIET, QUIET)
        turns.put(BUSY, BUSY)
    for _ in range(20):
        turns.take(lambda owner: owner != BUSY)
    for _ in range(20):
        turns.put(QUIET, QUIET)

    order = [turns.take() for _ in range(10)]

    assert order[0] == BUSY
    assert order.count(QUIET) >= 4


def test_what_is_discarded_is_not_taken_and_the_very_piece_is_meant() -> None:
    turns = Turns[list[int]]()
    first, second = [1], [1]
    turns.put(BUSY, first)
    turns.put(BUSY, second)

    turns.discard(BUSY, second)
    turns.discard(QUIET, first)

    assert turns.take() is first
    assert not turns


def test_clearing_gives_all_that_waits() -> None:
    turns = Turns[UUID]()
    for owner in (BUSY, QUIET, BUSY):
        turns.put(owner, owner)

    assert sorted(turns) == sorted(turns.clear()) == [BUSY, BUSY, QUIET]
    assert not turns


def test_nothing_is_remembered_of_who_has_had_its_turns() -> None:
    turns = Turns[UUID]()

    served(turns, [UUID(int=number) for number in range(1, 1_000)])
    served(turns, [BUSY] * 3)

    assert set(turns._next) == {BUSY}
