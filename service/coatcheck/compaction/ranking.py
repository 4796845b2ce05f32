"""Candidates for lines, best first, each weighed only when its turn may have come.

Weighing a line reads it with several patterns, and most marked lines of a long window are never looked at: what a line can
weigh at most decides when it is weighed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush

from coatcheck.compaction.candidates import Candidate, Mark
from coatcheck.compaction.quotable import Quotable

_Key = tuple[float, int, int, int]
"""What a candidate weighs or can weigh, negated; the later message first; the earlier place; one number for each, against ties."""


class Ranking:
    """By weight; among equals the later in the window first, then the earlier in its segment: one order for one plan."""

    def __init__(self, marks: Iterable[Mark], wanted: Callable[[Quotable], bool]) -> None:
        """``wanted`` says whether a quotable may be quoted still; once it says no of one, it says so for good."""
        self._wanted = wanted
        self._heap: list[tuple[_Key, Mark | Candidate]] = []
        self._added = 0
        for mark in marks:
            self._heap.append((self._key(mark.at_most, mark.quotable, mark.start), mark))
        heapify(self._heap)

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Candidates that are weighed already."""
        for candidate in candidates:
            heappush(self._heap, (self._key(candidate.score, candidate.quotable, candidate.start), candidate))

    def down_to(self, least: float) -> Iterator[Candidate]:
        """Those that weigh as much, best first. What is left stays for the next call."""
        while self._heap and -self._heap[0][0][0] >= least:
            _, best = heappop(self._heap)
            if not self._wanted(best.quotable):
                continue
            if isinstance(best, Candidate):
                yield best
            else:
                self.add((best.weighed(),))

    def _key(self, weight: float, quotable: Quotable, start: int) -> _Key:
        self._added += 1
        return -weight, -quotable.position, start, self._added
