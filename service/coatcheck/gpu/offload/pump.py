"""A pump: one thread that executes modelled streams for real, in an order that its seed decides.

So that the connector's own threads can be run, and measured, where there is no device.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from types import TracebackType

from coatcheck.gpu.offload.modelled import ModelledStream

IDLE_S = 0.000_1


class Pump:
    """Between ``with`` and its end, whatever can go on in the streams does, one operation after the other."""

    def __init__(self, streams: Sequence[ModelledStream], seed: int = 0) -> None:
        """Of two pumps each has streams of its own: what these do takes no time from the others."""
        self._streams = streams
        self._random = random.Random(seed)
        self._stopped = threading.Event()
        self._held: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)

    def hold(self, stream: ModelledStream) -> None:
        """The stream stands still from now on, as behind a kernel that does not end."""
        self._held.add(stream.name)

    def release(self, stream: ModelledStream) -> None:
        self._held.discard(stream.name)

    def __enter__(self) -> Pump:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            able = [stream for stream in self._streams if stream.name not in self._held and stream.can_go_on()]
            if able:
                self._random.choice(able).go_on()
            else:
                self._stopped.wait(IDLE_S)
