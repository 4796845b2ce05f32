"""Whose turn it is: a queue in which owners alternate, however much each of them asks for (start-time fair queueing).

Who asks for ten gets one between two of anybody else's; who was idle, or was passed over, saves nothing up. While one has much
less waiting than another, it gets two turns to the other's one: that costs who waits for many pieces little, and spares who waits
for few much.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar
from uuid import UUID

MUCH_MORE = 2
"""So many times what somebody else has waiting: beyond it an owner's turns are half as many."""

T = TypeVar("T")


class Turns(Generic[T]):
    """What waits, of all owners. Not for several threads at once.

    Each owner has a number, the lowest goes first. It moves on by a step with each piece, and is never lower than that of the piece
    which was taken last when the owner came with its first.
    """

    def __init__(self) -> None:
        self._now = 0
        self._next: dict[UUID, int] = {}
        self._waiting: dict[UUID, deque[tuple[int, T]]] = {}
        """Each piece with its place among all that ever came: equals go in that order."""
        self._places = itertools.count()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def waits(self, owner: UUID) -> bool:
        """Whether the owner waits for something."""
        return owner in self._waiting

    def __iter__(self) -> Iterator[T]:
        return (piece for pieces in self._waiting.values() for _, piece in pieces)

    def put(self, owner: UUID, piece: T) -> None:
        if owner not in self._waiting:
            self._next[owner] = max(self._now, self._next.get(owner, 0))
            self._waiting[owner] = deque()
        self._waiting[owner].append((next(self._places), piece))

    def take(self, may: Callable[[UUID], bool] = lambda owner: True) -> T | None:
        """The piece whose turn it is, of those whose owners may; None where there is none."""
        passed_over: list[UUID] = []
        for owner in sorted(self._waiting, key=lambda owner: (self._next[owner], self._waiting[owner][0][0])):
            if may(owner):
                piece = self._take_from(owner)
                # Theirs is the next turn, and not every one that they could not take: all of those at once would starve the rest.
                self._next.update({one: self._now for one in passed_over if self._next[one] < self._now})
                return piece
            passed_over.append(owner)
        return None

    def discard(self, owner: UUID, piece: T) -> None:
        """Takes a piece out that nobody waits for any more."""
        left = deque(one for one in self._waiting.get(owner, ()) if one[1] is not piece)
        self._keep(owner, left)

    def clear(self) -> list[T]:
        """Takes everything out, and gives it."""
        pieces = list(self)
        self._waiting.clear()
        return pieces

    def _take_from(self, owner: UUID) -> T:
        self._now = max(self._now, self._next[owner])
        self._next[owner] += 2 if self._crowds(owner) else 1
        _, piece = self._waiting[owner].popleft()
        self._keep(owner, self._waiting[owner])
        self._next = {one: after for one, after in self._next.items() if after > self._now or one in self._waiting}
        return piece

    def _crowds(self, owner: UUID) -> bool:
        return len(self._waiting[owner]) > MUCH_MORE * min(map(len, self._waiting.values()))

    def _keep(self, owner: UUID, left: deque[tuple[int, T]]) -> None:
        if left:
            self._waiting[owner] = left
        else:
            self._waiting.pop(owner, None)
