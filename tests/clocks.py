"""A clock in a test's hand."""

from __future__ import annotations


class Clock:
    """A monotonic clock that goes only as far as the test puts it forward; seconds."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
