"""The source cap alone."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.memory.spread import Spread

OWN, MALLORY, BEN = UUID(int=1), UUID(int=2), UUID(int=3)


def spread(found: list[UUID], size: int) -> list[int]:
    """The places that are chosen of what these sources said."""
    taken: Spread[int] = Spread(OWN, size)
    taken.add((source, place) for place, source in enumerate(found))
    return taken.best()


def test_another_has_half_and_the_best_of_the_rest_follows() -> None:
    assert spread([MALLORY] * 10 + [OWN] * 10, 6) == [0, 1, 2, 10, 11, 12]


def test_every_other_source_has_its_half() -> None:
    assert spread([MALLORY, MALLORY, MALLORY, BEN, BEN, BEN, OWN], 4) == [0, 1, 3, 4]


def test_what_nobody_else_wants_goes_to_who_has_more() -> None:
    assert spread([MALLORY] * 10 + [OWN], 5) == [0, 1, 2, 3, 10]
    assert spread([MALLORY] * 10, 5) == [0, 1, 2, 3, 4]


def test_ones_own_is_not_capped() -> None:
    assert spread([OWN] * 10 + [MALLORY], 5) == [0, 1, 2, 3, 4]


@given(st.lists(st.sampled_from([OWN, MALLORY, BEN]), max_size=40), st.integers(1, 20))
def test_as_many_as_there_are_in_their_order_each_once(found: list[UUID], size: int) -> None:
    places = spread(found, size)

    assert len(places) == min(size, len(found))
    assert places == sorted(set(places))
