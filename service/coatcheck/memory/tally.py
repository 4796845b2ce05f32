"""Which points were met, in fixed memory: two walks that met the same points have the same tally, and two that did not differ.

Points are sorted into buckets by the first bits of their ids, which are hashes; of each bucket the number and the exclusive or of
the ids is kept. Where two tallies differ, the points of that bucket alone are worth a look.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

BUCKET_BITS = 12
_SHIFT = 128 - BUCKET_BITS


class Tally:
    """The points of one walk."""

    def __init__(self) -> None:
        self._numbers = [0] * (1 << BUCKET_BITS)
        self._ids = [0] * (1 << BUCKET_BITS)

    def add(self, point_ids: Iterable[UUID]) -> None:
        numbers, ids = self._numbers, self._ids
        for point_id in point_ids:
            value = point_id.int
            bucket = value >> _SHIFT
            numbers[bucket] += 1
            ids[bucket] ^= value

    def differing(self, other: Tally) -> frozenset[int]:
        """The buckets whose points are not the same."""
        mine, theirs = zip(self._numbers, self._ids, strict=True), zip(other._numbers, other._ids, strict=True)
        return frozenset(bucket for bucket, (own, foreign) in enumerate(zip(mine, theirs, strict=True)) if own != foreign)


def bucket_of(point_id: UUID) -> int:
    return point_id.int >> _SHIFT
