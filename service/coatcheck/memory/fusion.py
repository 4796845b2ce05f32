"""From the legs' passages to one order of segments: grouped, fused by weighted reciprocal rank, newest first among equals.

Reciprocal rank fusion: Cormack, Clarke and Buettcher, SIGIR 2009. Nothing is cut by a score: scores of different legs, and of
different tenants' collections, say nothing about each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from coatcheck.domain.passages import IndexHit

SegmentKey = tuple[UUID, str]
"""Session and exact hash: what a segment is within its tenant."""

NEAR = 1e-9
"""Fused scores closer than this are equal: the newer segment stands first."""


@dataclass(slots=True)
class Candidate:
    """One segment with its best rank in each leg, from 1."""

    session_id: UUID
    sha256: str
    last_at: datetime
    ranks: dict[str, int] = field(default_factory=dict)
    score: float = 0.0

    @property
    def key(self) -> SegmentKey:
        return self.session_id, self.sha256


def fuse(legs: Mapping[str, Sequence[IndexHit]], weights: Mapping[str, float], k: int) -> list[Candidate]:
    """The segments of all legs, best first. A segment's rank in a leg is that of its best passage among the leg's segments."""
    found: dict[SegmentKey, Candidate] = {}
    for leg, hits in legs.items():
        rank = 0
        for hit in hits:
            fresh = Candidate(hit.session_id, hit.exact_sha256, hit.last_at)
            candidate = found.setdefault(fresh.key, fresh)
            if leg not in candidate.ranks:
                rank += 1
                candidate.ranks[leg] = rank
                candidate.score += weights[leg] / (k + rank)
    return sorted(found.values(), key=lambda c: (-round(c.score / NEAR), -c.last_at.timestamp(), c.sha256))
