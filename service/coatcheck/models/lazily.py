"""A model that is loaded when it is first asked, by the thread that asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from coatcheck.domain.errors import CoatcheckError, StageFailed

M = TypeVar("M")

RETRY_S = 60.0
"""A model that could not be loaded is not tried again for so long: each try costs seconds, and memory that may be short."""

log = structlog.get_logger(__name__)


class Lazily(Generic[M]):
    """Calls ``load`` once. Used by one thread at a time: its stage's worker's."""

    def __init__(
        self, stage: str, load: Callable[[], M], *, retry_s: float = RETRY_S, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._stage = stage
        self._load = load
        self._retry_s = retry_s
        self._monotonic = monotonic
        self._model: M | None = None
        self._failure: CoatcheckError | None = None
        self._failed_at = 0.0

    def __call__(self) -> M:
        """The model. Raises StageFailed, and again without another try for a while."""
        if self._model is not None:
            return self._model
        if self._failure is not None and self._monotonic() - self._failed_at < self._retry_s:
            raise StageFailed(self._failure.detail)
        try:
            self._model = self._load()
        except Exception as error:
            detail = error.detail if isinstance(error, CoatcheckError) else f"The model of the stage {self._stage} does not load."
            self._failure, self._failed_at = StageFailed(detail), self._monotonic()
            log.warning("model not loaded", stage=self._stage, kind=type(error).__name__, detail=detail)
            raise self._failure from error
        self._failure = None
        return self._model
