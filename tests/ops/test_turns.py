"""The order in which owners get their turns."""

from __future__ import annotations

from uuid import UUID

from coatcheck.ops.turns import Turns

BUSY, QUIET, LATE = UUID(int=1), UUID(int=2), UUID(int=3)


def order(turns: Turns, asked: list[UUID]) -> list[UUID]:
    numbered = sorted((turns.take(owner), place, owner) for place, owner in enumerate(asked))
    for number, _, _ in numbered:
        turns.begin(number)
    return [owner for _, _, owner in numbered]


def test_who_asks_for_ten_gets_one_between_two_of_somebody_elses() -> None:
    served = order(Turns(), [BUSY] * 10 + [QUIET] * 3)

    assert served[:6] == [BUSY, QUIET, BUSY, QUIET, BUSY, QUIET]
    assert served[6:] == [BUSY] * 7


def test_who_was_idle_saves_nothing_up() -> None:
    turns = Turns()
    order(turns, [BUSY] * 100)

    served = order(turns, [BUSY] * 3 + [LATE] * 6)

    assert served[:6].count(BUSY) == 3


def test_nothing_is_remembered_of_who_has_had_its_turns() -> None:
    turns = Turns()

    order(turns, [UUID(int=number) for number in range(1, 1_000)])
    turns.begin(2)

    assert turns._next == {}
