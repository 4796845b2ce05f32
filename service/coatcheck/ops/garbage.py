"""The cycle collector, set for a process that serves: it had been a third of the time of a plan.

A plan makes tens of thousands of small values that hold no cycles and are freed by counting; by default Python looks for cycles
after every 700 of them, and from time to time through every module that is loaded.
"""

from __future__ import annotations

import gc

_YOUNG, _MIDDLE, _OLD = 50_000, 20, 100


def look_seldom() -> None:
    """For before the service is imported: that makes many objects and hardly any garbage."""
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)


def settle() -> None:
    """For the end of a process's start. What lives by now is never looked through again; new values are, less often.

    Not for a process that goes on to start others of its kind, as tests do: garbage that is frozen is never freed.
    """
    gc.collect()
    gc.freeze()
    look_seldom()
