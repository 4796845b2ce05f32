"""Threads that give way to others."""

from __future__ import annotations

import os
import sys
import threading

NICEST = 19


def give_way(by: int) -> None:
    """Lowers the calling thread's priority by so many steps of ``nice``, on Linux, where each thread has its own.

    It cannot be raised again. A thread that has given way by 5 gets a third of what another one gets of a core that both want.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(NICEST, os.getpriority(os.PRIO_PROCESS, thread) + by))
