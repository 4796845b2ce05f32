"""A bench: the connector's real threads over modelled streams that a pump executes, and a model that keeps what it read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from coatcheck.gpu.offload import Job, Offload
from coatcheck.gpu.offload.modelled import Array, ModelledStream, ModelledStreams, memory
from coatcheck.gpu.offload.pump import Pump
from coatcheck.ops.progress import ProgressBoard, Stage

LIMIT_S = 20.0
WIDTH = 4
Rows = Callable[[Array, Array], None]


def table_rows(inputs: Array, rows: Array) -> None:
    """A row of floats for each token, as an embedding table gives them: no two tokens have the same."""
    columns = np.arange(1, WIDTH + 1, dtype=np.float32)
    rows[:] = np.sqrt(inputs[:, None].astype(np.float32)) / columns


@dataclass(slots=True)
class Bench:
    streams: ModelledStreams
    offload: Offload[Array]
    board: ProgressBoard
    pump: Pump
    preparation: ModelledStream
    model: ModelledStream
    inputs: Array
    """The one buffer that every pass's inputs are written to."""
    target: Array
    read: dict[int, Array] = field(default_factory=dict)
    """What the model's forward of each pass found."""

    def launch(self, number: int, tokens: Array, *, limit_s: float = LIMIT_S) -> Job[Array]:
        """Overwrites the inputs, submits them, and has the model read the rows, all of it in the streams' order."""
        self.preparation.put_in(("prepare", number), lambda: np.copyto(self.inputs[: len(tokens)], tokens))
        inputs, target = self.inputs[: len(tokens)], self.target[: len(tokens)]
        job = self.offload.submit(inputs, target, written_on=self.preparation, consumer=self.model, limit_s=limit_s)
        self.model.put_in(("forward", number), lambda: self.read.__setitem__(number, target.copy()))
        return job


@contextmanager
def running(depth: int, tokens: int, compute: Rows = table_rows, *, limit_s: float = 60, seed: int = 0) -> Iterator[Bench]:
    """``limit_s`` is the stage's on the board."""
    streams = ModelledStreams()
    board = ProgressBoard([Stage("offload", True, limit_s)])
    offload = Offload(streams, lambda: memory(tokens, (WIDTH,)), compute, board, depth=depth, scheduler_depth=depth)
    preparation, model = streams.stream("preparation"), streams.stream("model")
    with Pump(streams.streams, seed) as pump:
        offload.start()
        inputs, target = np.zeros(tokens, np.int64), np.zeros((tokens, WIDTH), np.float32)
        yield Bench(streams, offload, board, pump, preparation, model, inputs, target)
        offload.close(1.0)


class Gate:
    """A compute that stands still until it is opened."""

    def __init__(self, holds: Callable[[Array], bool] = lambda inputs: True) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        self._holds = holds

    def __call__(self, inputs: Array, rows: Array) -> None:
        if self._holds(inputs):
            self.reached.set()
            assert self.opened.wait(LIMIT_S)
        table_rows(inputs, rows)
