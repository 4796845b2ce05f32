"""The named points of the code, in one list: where each is reached, and so which proofs meet it.

``test_points`` compares the list with the source: a point without a case here fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Way = Literal["compaction", "renewal", "erasure", "reconciling", "start", "off-boarding", "first key"]


@dataclass(frozen=True, slots=True)
class Point:
    """``in_transaction``: whoever stands still there holds rows that others wait for, as only a hanging process does."""

    name: str
    way: Way
    in_transaction: bool = False


POINTS = (
    Point("before-persist", "compaction"),
    Point("inside-persist", "compaction", in_transaction=True),
    Point("after-persist", "compaction"),
    Point("before-upsert", "compaction"),
    Point("after-upsert", "compaction"),
    Point("before-acknowledge", "compaction"),
    Point("inside-acknowledge", "compaction", in_transaction=True),
    Point("after-acknowledge", "compaction"),
    Point("before-renew", "renewal"),
    Point("inside-erase-mark", "erasure", in_transaction=True),
    Point("after-erase-mark", "erasure"),
    Point("inside-journal", "erasure", in_transaction=True),
    Point("after-journal", "erasure"),
    Point("after-points-erased", "erasure"),
    Point("inside-rows-erased", "erasure", in_transaction=True),
    Point("after-tenant-suspended", "off-boarding"),
    Point("after-tenant-journal", "off-boarding"),
    Point("after-tenant-points", "off-boarding"),
    Point("inside-tenant-rows", "off-boarding", in_transaction=True),
    Point("before-tenant-goes", "off-boarding"),
    Point("after-claim", "reconciling"),
    Point("after-leases-voided", "start"),
    Point("inside-recovery", "start"),
    Point("before-fill", "start"),
    Point("before-first-key", "first key"),
    Point("inside-first-key", "first key", in_transaction=True),
    Point("after-first-key", "first key"),
)


def named(way: Way, *, in_transaction: bool | None = None) -> list[str]:
    """The names of the points on one way."""
    return [p.name for p in POINTS if p.way == way and in_transaction in (None, p.in_transaction)]
