"""A model that is loaded when it is first asked, by the thread that asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Generic, TypeVar

import structlog

from coatcheck.domain.errors import CoatcheckError, GpuUnfit, RefusedToStart, StageFailed, StageUnfit

M = TypeVar("M")

RETRY_S = 60.0
"""A model that could not be loaded is not tried again for so long: each try costs seconds, and memory that may be short."""

_FOR_GOOD = (StageUnfit, GpuUnfit, RefusedToStart)
"""What is wrong with the files or the settings, which are read at the start: no try finds others."""

log = structlog.get_logger(__name__)

_around_loading: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar("around_loading", default=nullcontext)


@contextmanager
def loading_seen(around: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Whatever is loaded within this, in this thread, is loaded within ``around()``.

    The context's, since the model that loads lies several calls below the worker that knows the board.
    """
    token = _around_loading.set(around)
    try:
        yield
    finally:
        _around_loading.reset(token)


def loading() -> AbstractContextManager[None]:
    """Entered by whoever loads a model."""
    return _around_loading.get()()


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
        self._failure: StageFailed | None = None
        self._failed_at = 0.0

    def __call__(self) -> M:
        """The model. Raises StageFailed, and again without another try for a while; StageUnfit, after which there is none."""
        if self._model is not None:
            return self._model
        if self._failure is not None and (
            isinstance(self._failure, StageUnfit) or self._monotonic() - self._failed_at < self._retry_s
        ):
            raise type(self._failure)(self._failure.detail)
        try:
            with loading():
                self._model = self._load()
        except Exception as error:
            detail = error.detail if isinstance(error, CoatcheckError) else f"The model of the stage {self._stage} does not load."
            self._failure = (StageUnfit if _is_for_good(error) else StageFailed)(detail)
            self._failed_at = self._monotonic()
            again_s = None if isinstance(self._failure, StageUnfit) else self._retry_s
            log.warning("model not loaded", stage=self._stage, kind=type(error).__name__, detail=detail, again_s=again_s)
            raise self._failure from error
        self._failure = None
        return self._model


def _is_for_good(error: Exception) -> bool:
    """Not where the system could not read a file: a disk or a network may come back."""
    return isinstance(error, _FOR_GOOD) and not isinstance(error.__cause__, OSError)
