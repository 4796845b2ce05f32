"""How much processor time the text of one request may take, however it was made to be slow.

Time of the thread that works, not of the wall: a busy machine makes nothing too costly. The bound is the context's, since what
spends the time (a match in a chunk of a view of a leaf of a message) lies six calls below what sets it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from coatcheck.domain.errors import RedactionTooCostly

LIMIT_S = 20.0
"""An ordinary window of 32 MiB takes about ten. Less than a request's deadline, so that its answer says why; and far less than the
two minutes after which a vital stage ends the process."""

_until_s: ContextVar[float] = ContextVar("effort_until_s", default=float("inf"))
_moved: ContextVar[Callable[[], None]] = ContextVar("effort_moved", default=lambda: None)


@contextmanager
def bounded(limit_s: float | None = None) -> Iterator[None]:
    """Within it ``check`` raises once this thread has worked for so long; a bound outside of it stands as well."""
    token = _until_s.set(min(_until_s.get(), time.thread_time() + (LIMIT_S if limit_s is None else limit_s)))
    try:
        yield
    finally:
        _until_s.reset(token)


@contextmanager
def noticed(moved: Callable[[], None]) -> Iterator[None]:
    """Within it ``moved`` is called at each step: on a busy machine twenty seconds of work may take minutes of the wall's time."""
    token = _moved.set(moved)
    try:
        yield
    finally:
        _moved.reset(token)


def step() -> None:
    """Says that the work moved on."""
    _moved.get()()


def check() -> None:
    """As ``step``. Raises RedactionTooCostly when the bound is passed."""
    step()
    if time.thread_time() > _until_s.get():
        raise RedactionTooCostly
