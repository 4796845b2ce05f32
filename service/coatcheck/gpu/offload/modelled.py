"""A deterministic model of CUDA's ordering: streams that execute nothing until somebody says which one goes on.

What it keeps of CUDA: a stream executes its operations in the order in which they were put in; a wait is for what the event stood
for when the wait was put in; an event that was never recorded is complete; a host's question about an event is about its newest
recording; a signal is waited for by value. Memory is NumPy's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from coatcheck.gpu.offload.job import Memory
from coatcheck.gpu.offload.streams import Event, Signal, Stream

Array: TypeAlias = npt.NDArray[Any]


@dataclass(slots=True, eq=False)
class ModelledEvent(Event):
    number: int
    recordings: int = 0
    """How often it was recorded; the newest is what it stands for."""
    completed: int = 0
    """The newest recording that its stream has passed."""


@dataclass(slots=True, eq=False)
class ModelledSignal(Signal):
    number: int
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a stream does when it comes to it and ``ready`` says so."""

    what: tuple[Hashable, ...]
    ready: Callable[[], bool]
    execute: Callable[[], None]


@dataclass(slots=True, eq=False)
class ModelledStream(Stream):
    name: str
    operations: deque[Operation] = field(default_factory=deque)

    def can_go_on(self) -> bool:
        return bool(self.operations) and self.operations[0].ready()

    def go_on(self) -> None:
        """Executes its next operation."""
        self.operations[0].execute()
        self.operations.popleft()

    def put_in(self, what: Sequence[Hashable], execute: Callable[[], None], ready: Callable[[], bool] = lambda: True) -> None:
        """A work of somebody's own, a model's kernels say."""
        self.operations.append(Operation(tuple(what), ready, execute))


class ModelledStreams:
    """``Streams`` over NumPy arrays."""

    def __init__(self) -> None:
        self.streams: list[ModelledStream] = []
        self.events: list[ModelledEvent] = []
        self.signals: list[ModelledSignal] = []

    def stream(self, name: str) -> ModelledStream:
        self.streams.append(ModelledStream(name))
        return self.streams[-1]

    def event(self) -> ModelledEvent:
        self.events.append(ModelledEvent(len(self.events)))
        return self.events[-1]

    def signal(self) -> ModelledSignal:
        self.signals.append(ModelledSignal(len(self.signals)))
        return self.signals[-1]

    def record(self, stream: Stream, event: Event) -> None:
        assert isinstance(stream, ModelledStream)
        assert isinstance(event, ModelledEvent)
        event.recordings += 1
        recording = event.recordings

        def complete() -> None:
            event.completed = max(event.completed, recording)

        stream.put_in(("record", event.number, recording), complete)

    def wait(self, stream: Stream, event: Event) -> None:
        assert isinstance(stream, ModelledStream)
        assert isinstance(event, ModelledEvent)
        recording = event.recordings
        stream.put_in(("wait", event.number, recording), lambda: None, lambda: event.completed >= recording)

    def wait_signal(self, stream: Stream, signal: Signal, sequence: int) -> None:
        assert isinstance(stream, ModelledStream)
        assert isinstance(signal, ModelledSignal)
        stream.put_in(("wait-signal", signal.number, sequence), lambda: None, lambda: signal.sequence >= sequence)

    def copy(self, stream: Stream, source: Array, target: Array) -> None:
        assert isinstance(stream, ModelledStream)
        if source.shape != target.shape:
            raise ValueError(f"A copy from {source.shape} to {target.shape}.")
        stream.put_in(("copy",), lambda: np.copyto(target, source))

    def completed(self, event: Event) -> bool:
        assert isinstance(event, ModelledEvent)
        return event.completed >= event.recordings

    def raise_signal(self, signal: Signal, sequence: int) -> None:
        assert isinstance(signal, ModelledSignal)
        signal.sequence = max(signal.sequence, sequence)

    def stamp(self, tag: Array, sequence: int) -> None:
        tag[0] = sequence

    def stamped(self, tag: Array) -> int:
        return int(tag[0])

    def size(self, memory: Array) -> int:
        return int(memory.shape[0])

    def part(self, memory: Array, size: int) -> Array:
        return memory[:size]

    def state(self) -> Hashable:
        """All that decides what the streams can do from here, memory excepted."""
        return (
            tuple(tuple(operation.what for operation in stream.operations) for stream in self.streams),
            tuple((event.recordings, event.completed) for event in self.events),
            tuple(signal.sequence for signal in self.signals),
        )


def memory(tokens: int, row: Sequence[int] = (), *, rows_of: npt.DTypeLike = np.float32) -> Memory[Array]:
    """One slot's memory for passes of up to so many tokens, with a row of this shape for each."""
    return Memory(
        inputs=np.zeros(tokens, np.int64),
        rows=np.zeros((tokens, *row), rows_of),
        tag=np.zeros(1, np.int64),
        device_tag=np.zeros(1, np.int64),
        seen=np.zeros(1, np.int64),
    )
