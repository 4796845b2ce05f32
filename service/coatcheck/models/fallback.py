"""A router that has another one behind it: what the first cannot answer, the second does, and who has no answer then keeps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import CoatcheckError, GpuRefused, GpuUnsupported, Overloaded, StageFailed, StageUnfit
from coatcheck.domain.ports import Router
from coatcheck.models.lazily import RETRY_S, Lazily

STAGE = "router"
_BROKEN = (StageFailed, GpuRefused, GpuUnsupported, Overloaded)
"""What is the first one's own trouble. Labels that leave no room, or no time, would be the second one's too."""

log = structlog.get_logger(__name__)


class FallbackRouter:
    """Router port. Loads the first when it is made; the second is loaded when it is needed. One thread at a time.

    One that failed is asked for nothing for a while: each try would take time from texts that the second has to read. One that the
    files or the settings rule out is not tried again at all. Raises StageUnavailable.
    """

    def __init__(
        self,
        first: Callable[[], Router],
        second: Callable[[], Router],
        *,
        revision: str,
        retry_s: float = RETRY_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.revision = revision
        self._first = Lazily(STAGE, first, retry_s=retry_s, monotonic=monotonic)
        self._second = Lazily(STAGE, second, retry_s=retry_s, monotonic=monotonic)
        self._retry_s = retry_s
        self._monotonic = monotonic
        self._first_again_at = -math.inf
        try:
            self._first()
        except StageFailed as error:
            self._leave_first(error)
            self._second()

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        if self._monotonic() >= self._first_again_at:
            try:
                found = self._first().route(texts, labels, budget)
            except _BROKEN as error:
                self._leave_first(error)
            else:
                if _are_numbers(found):
                    return found
                # Of these texts, it may be: they are no reason to leave everybody else's to the second.
                log.warning("router fell back", kind="NoNumber", detail="The scores are none.")
        return self._second().route(texts, labels, budget)

    def _leave_first(self, error: CoatcheckError) -> None:
        is_for_good = isinstance(error, StageUnfit)
        self._first_again_at = math.inf if is_for_good else self._monotonic() + self._retry_s
        again_s = None if is_for_good else self._retry_s
        log.warning("router fell back", kind=type(error).__name__, detail=error.detail, again_s=again_s)


def _are_numbers(found: list[Mapping[str, float]]) -> bool:
    """Eight bits overflow where more do not."""
    return all(math.isfinite(score) for scores in found for score in scores.values())
