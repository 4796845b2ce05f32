"""Steps: code that a thread runs for real, and that an explorer runs in every order.

A generator yields wherever another thread may come in between: None to go on, an ``Until`` to wait. Between two yields stands one
action that others can see: one critical section, or a run of operations put into one stream (which no thread sees before the
record that ends it). So what the explorer proves of every order of the steps holds for the threads too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

POLL_S = 0.000_2
"""How often a condition that the device alone changes is looked at: it notifies nobody."""

R = TypeVar("R")


class Late(Exception):
    """A wait's deadline has passed. Thrown into the steps that wait; it never leaves them."""


@dataclass(frozen=True, slots=True)
class Until:
    """A wait that ends when ``ready`` says so, or with ``Late`` at ``ends_at``."""

    what: str
    ready: Callable[[], bool]
    """Looked at often, with the condition held: quick, and without effect."""
    ends_at: float | None = None
    polled: bool = False
    """Whether the device can make it ready, who notifies nobody."""


Steps: TypeAlias = Generator[Until | None, None, R]


def drive(steps: Steps[R], changed: threading.Condition, monotonic: Callable[[], float]) -> R:
    """Runs the steps in this thread. Nothing is held while they run; ``changed`` is what their waits wait on."""
    late: Late | None = None
    while True:
        try:
            step = steps.send(None) if late is None else steps.throw(late)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        late = None if step is None else _wait(step, changed, monotonic)


def _wait(step: Until, changed: threading.Condition, monotonic: Callable[[], float]) -> Late | None:
    with changed:
        while not step.ready():
            left_s = None if step.ends_at is None else step.ends_at - monotonic()
            if left_s is not None and left_s <= 0:
                return Late(step.what)
            if step.polled:
                left_s = POLL_S if left_s is None else min(left_s, POLL_S)
            changed.wait(left_s)
    return None
