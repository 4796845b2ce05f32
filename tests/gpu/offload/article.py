"""The connector of the article, step by step: one pass at a time was assumed of its queue, its event and its input buffer."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Hashable

import numpy as np

from coatcheck.gpu.offload.explorer import Actor
from coatcheck.gpu.offload.modelled import ModelledStreams
from coatcheck.gpu.offload.steps import Steps, Until

PASSES = 2


class Article:
    """Two passes, A and B, over a preparation stream, the model's and the copying one. ``capacity`` is the queue's."""

    def __init__(self, capacity: int, *, own_events: bool, snapshots: bool) -> None:
        self.streams = ModelledStreams()
        self._preparation, self._model, self._copying = (self.streams.stream(name) for name in ("preparation", "model", "copying"))
        events = [self.streams.event() for _ in range(PASSES if own_events else 1)]
        self._events = [events[number % len(events)] for number in range(PASSES)]
        buffers = [np.zeros(1, np.int64) for _ in range(PASSES if snapshots else 1)]
        self._snapshots = snapshots
        self._buffers = [buffers[number % len(buffers)] for number in range(PASSES)]
        self._inputs = np.zeros(1, np.int64)
        self._copied = [np.zeros(1, np.int64) for _ in range(PASSES)]
        self._prepared = [self.streams.event() for _ in range(PASSES)]
        self._on_host = [self.streams.event() for _ in range(PASSES)]
        self._semaphore = self.streams.signal()
        self._queue: deque[int] = deque()
        self._capacity = capacity
        self._read = [0] * PASSES
        """What each pass's forward worked with: 1 for A, 2 for B."""
        self.actors = [Actor("launcher", self._launch()), Actor("worker", self._work(), background=True)]

    def now(self) -> float:
        return 0.0

    def check(self) -> None:
        """Everything may happen to it."""

    def state(self) -> Hashable:
        memory = [self._inputs, *self._buffers, *self._copied]
        return tuple(self._queue), tuple(self._read), b"".join(array.tobytes() for array in memory)

    def outcome(self) -> tuple[bool, tuple[int, ...]]:
        """Whether an insertion failed, and what each pass's forward worked with, 0 where it did not come to it."""
        return isinstance(self.actors[0].error, queue.Full), tuple(self._read)

    def _launch(self) -> Steps[None]:
        for number in range(PASSES):
            yield None
            self._preparation.put_in(("prepare", number), lambda value=number + 1: self._inputs.fill(value))  # type: ignore[misc]
            if self._snapshots:
                self.streams.copy(self._preparation, self._inputs, self._buffers[number])
            self.streams.record(self._preparation, self._prepared[number])
            yield None
            self.streams.wait(self._model, self._prepared[number])
            self.streams.record(self._model, self._events[number])
            yield None
            if len(self._queue) >= self._capacity:
                raise queue.Full
            self._queue.append(number)
            yield None
            self.streams.wait_signal(self._model, self._semaphore, number + 1)
            self._model.put_in(("forward", number), lambda n=number: self._forward(n))  # type: ignore[misc]

    def _work(self) -> Steps[None]:
        while True:
            yield Until("a pass", lambda: bool(self._queue))
            number = self._queue.popleft()
            yield None
            self.streams.wait(self._copying, self._events[number])
            yield None
            source = self._buffers[number] if self._snapshots else self._inputs
            self.streams.copy(self._copying, source, self._copied[number])
            self.streams.record(self._copying, self._on_host[number])
            yield Until("the copy", lambda n=number: self.streams.completed(self._on_host[n]))  # type: ignore[misc]
            self.streams.raise_signal(self._semaphore, number + 1)

    def _forward(self, number: int) -> None:
        self._read[number] = int(self._copied[number][0])
