"""How long the models of one compaction may take, and on whose account they work."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Budget:
    """A time by which every model stage has answered or is done without; ``owner`` is whose turn the work is."""

    owner: UUID
    ends_at: float
    """On the clock of ``monotonic``."""
    monotonic: Callable[[], float] = time.monotonic
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered while a model is waited for: whoever plans needs no core meanwhile."""

    @classmethod
    def of(cls, owner: UUID, seconds: float) -> Budget:
        return cls(owner, time.monotonic() + seconds)

    def left_s(self) -> float:
        """Seconds; none or less when the time is over."""
        return self.ends_at - self.monotonic()
