"""Weighted reciprocal rank fusion, grouped by segment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from coatcheck.domain.passages import IndexHit
from coatcheck.memory.fusion import fuse

SESSION = UUID(int=7)
DAY = datetime(2026, 11, 1, tzinfo=UTC)


def hit(name: str, passage: int = 0, days: int = 0) -> IndexHit:
    return IndexHit(SESSION, name, passage, DAY + timedelta(days=days))


def order(*args: object, **kwargs: object) -> list[str]:
    return [candidate.sha256 for candidate in fuse(*args, **kwargs)]  # type: ignore[arg-type]


def test_a_segment_found_by_both_legs_stands_before_one_found_by_either() -> None:
    legs = {"dense": [hit("a"), hit("both")], "lexical": [hit("b"), hit("both")]}

    assert order(legs, {"dense": 1, "lexical": 1}, 60)[0] == "both"


def test_passages_of_one_segment_count_once_and_do_not_push_the_others_down() -> None:
    legs = {"dense": [hit("long", 0), hit("long", 1), hit("long", 2), hit("short")]}

    candidates = fuse(legs, {"dense": 1}, 60)

    assert [(c.sha256, c.ranks["dense"]) for c in candidates] == [("long", 1), ("short", 2)]


def test_a_heavier_leg_decides() -> None:
    legs = {"dense": [hit("d"), hit("l")], "lexical": [hit("l"), hit("d")]}

    assert order(legs, {"dense": 1, "lexical": 2}, 60) == ["l", "d"]
    assert order(legs, {"dense": 2, "lexical": 1}, 60) == ["d", "l"]


def test_of_equals_the_newest_stands_first() -> None:
    legs = {"dense": [hit("old", days=1)], "lexical": [hit("new", days=2)]}

    assert order(legs, {"dense": 1, "lexical": 1}, 60) == ["new", "old"]


@pytest.mark.parametrize("legs", [{}, {"dense": []}, {"dense": [], "lexical": []}])
def test_nothing_found_is_nothing(legs: dict[str, list[IndexHit]]) -> None:
    assert order(legs, {"dense": 1, "lexical": 1}, 60) == []
