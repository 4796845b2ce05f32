"""Meters: how much of something each owner has used and was not charged for yet. Written by any thread."""

from __future__ import annotations

import threading
from uuid import UUID


class Meter:
    """An amount for each owner, until somebody takes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._amounts: dict[UUID, float] = {}

    def add(self, owner: UUID, amount: float) -> None:
        with self._lock:
            self._amounts[owner] = self._amounts.get(owner, 0.0) + amount

    def take(self, owner: UUID) -> float:
        """What was added since the last time it was taken."""
        with self._lock:
            return self._amounts.pop(owner, 0.0)
