"""The source cap: nobody else's words fill a caller's results while anything else was found.

A few records that somebody writes to be found by many questions would otherwise stand in every place (MemoryGraft,
arXiv 2512.16962: ten of them took about half of all retrievals). What the caller has handed in itself is not capped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeVar
from uuid import UUID

T = TypeVar("T")


class Spread(Generic[T]):
    """Takes what was found, best first, and gives ``size`` of it."""

    def __init__(self, own: UUID, size: int) -> None:
        self._own = own
        self._size = size
        self._cap = max(1, size // 2)
        self._taken: Counter[UUID] = Counter()
        self._found: list[T] = []
        self._chosen: list[int] = []
        self._over: list[int] = []

    def add(self, found: Iterable[tuple[UUID, T]]) -> None:
        """Each with the principal who handed it in."""
        for source, one in found:
            within = source == self._own or self._taken[source] < self._cap
            self._taken[source] += 1
            (self._chosen if within else self._over).append(len(self._found))
            self._found.append(one)

    @property
    def seen(self) -> int:
        return len(self._found)

    @property
    def is_full(self) -> bool:
        """Whether what is within the cap is enough."""
        return len(self._chosen) >= self._size

    def best(self) -> list[T]:
        """At most ``size``, in their order. What is over the cap fills the places that nothing else wants."""
        return [self._found[place] for place in sorted([*self._chosen, *self._over][: self._size])]
