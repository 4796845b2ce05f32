"""Token buckets: a rate with a minute's worth in hand. Times are monotonic seconds and come from the caller."""

from __future__ import annotations

MINUTE_S = 60.0


class TokenBucket:
    """Filled evenly, to a minute's worth at most. What is known only afterwards may put it into debt, which is refilled first."""

    __slots__ = ("_at", "_level", "per_minute")

    def __init__(self, per_minute: float, now: float) -> None:
        self.per_minute = per_minute
        self._level = per_minute
        self._at = now

    def wait_s(self, cost: float, now: float) -> float:
        """How long until so much may be taken; 0 when it may be now. More than a minute's worth needs a full bucket, no more."""
        missing = min(cost, self.per_minute) - self._refilled(now)
        # A hair less is enough: a wait that was sat out to its end must do.
        return missing * MINUTE_S / self.per_minute if missing > 1e-9 * self.per_minute else 0.0

    def take(self, cost: float, now: float) -> None:
        """Takes it, whether or not it is there."""
        self._level = self._refilled(now) - cost

    def change(self, per_minute: float, now: float) -> None:
        """Another rate from now on; what was in hand stays so in proportion, a debt as it is.

        In proportion, one request of a rate that was set too low by mistake would be a debt of hours at the right one.
        """
        if per_minute != self.per_minute:
            level = self._refilled(now)
            self._level = level * per_minute / self.per_minute if level > 0 else level
            self.per_minute = per_minute

    def _refilled(self, now: float) -> float:
        self._level = min(self.per_minute, self._level + max(0.0, now - self._at) * self.per_minute / MINUTE_S)
        self._at = now
        return self._level
