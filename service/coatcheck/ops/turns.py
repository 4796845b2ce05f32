"""Whose turn it is: an order in which owners alternate, however much each of them asks for (start-time fair queueing).

Each piece gets a number; lower numbers go first. An owner's next piece comes one step after its last, and never before the
one that is being worked on: so who asks for ten gets one between two of anybody else's, and who was idle saves nothing up.
"""

from __future__ import annotations

from uuid import UUID


class Turns:
    """Hands out the numbers. Not for several threads at once."""

    def __init__(self) -> None:
        self._now = 0
        self._next: dict[UUID, int] = {}

    def take(self, owner: UUID) -> int:
        """The number of the owner's next piece."""
        number = max(self._now, self._next.get(owner, 0))
        self._next[owner] = number + 1
        return number

    def begin(self, number: int) -> None:
        """The piece of this number is being worked on."""
        self._now = max(self._now, number)
        self._next = {owner: after for owner, after in self._next.items() if after > self._now}
