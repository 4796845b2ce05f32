"""How far ahead a due time or a lease's end can lie. What lies further was written before the clock was set back, and is over.

Several processes share one table, so that times in it are the calendar's: set back by hours, it would have work wait for as long.
Whoever held such a lease and lives is told by its fence, as everybody is whose lease was taken over.
"""

from __future__ import annotations

from datetime import datetime, timedelta

AT_LEAST = timedelta(minutes=10)
"""Twice the longest pause between two attempts."""
LEASES = 10
"""Of the asker's own length: another process may have been given longer ones."""


def furthest(now: datetime, lease_until: datetime) -> datetime:
    """``lease_until``: the end of a lease that is taken now."""
    return now + max(AT_LEAST, LEASES * (lease_until - now))
