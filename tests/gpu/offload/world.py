"""A world for the explorer: the real connector, a model that consumes its rows, and whatever disturbs the two."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable

import numpy as np

from coatcheck.domain.errors import CoatcheckError
from coatcheck.gpu.offload.connector import Offload
from coatcheck.gpu.offload.explorer import Actor
from coatcheck.gpu.offload.job import Job, Memory
from coatcheck.gpu.offload.modelled import Array, ModelledStreams, memory
from coatcheck.gpu.offload.steps import Steps
from coatcheck.ops.progress import ProgressBoard, Stage

FOR_EVER = math.inf
OVERWRITTEN = -1


class World:
    """Passes 1, 2, ... whose inputs stand in one buffer that each pass's preparation overwrites.

    The model's forward of a pass reads the rows, which are ten times the inputs. The launcher keeps as many passes in flight as the
    connector's depth allows.
    """

    def __init__(self, passes: int, depth: int, *, own_preparation: bool = False, ends_at: float = FOR_EVER) -> None:
        """``own_preparation``: inputs are written on a stream of their own and not on the model's."""
        self.streams = ModelledStreams()
        self.model = self.streams.stream("model")
        self.preparation = self.streams.stream("preparation") if own_preparation else self.model
        self.time = 0.0
        self.board = ProgressBoard([Stage("offload", True, 60)], self.now)
        self.memories: list[Memory[Array]] = []
        self.offload = Offload(
            self.streams, self._memory, self.compute, self.board, depth=depth, scheduler_depth=depth, monotonic=self.now
        )
        self.inputs, self.target = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.jobs: dict[int, Job[Array]] = {}
        self.outcomes: dict[int, str] = {}
        self.read: dict[int, int] = {}
        self.passes, self.depth, self.ends_at = passes, depth, ends_at
        self.worker = Actor("worker", self.offload.passes.work(), background=True)
        self.worker.act(late=False)  # a thread that has started
        self.actors = [Actor("launcher", self.launch()), self.worker]

    def now(self) -> float:
        return self.time

    def compute(self, inputs: Array, rows: Array) -> None:
        rows[:] = 10 * inputs

    def launch(self) -> Steps[None]:
        for number in range(1, self.passes + 1):
            if number > self.depth:
                yield from self.collect(number - self.depth)
            yield None
            self.preparation.put_in(("prepare", number), lambda value=number: self.inputs.fill(value))  # type: ignore[misc]
            try:
                job = yield from self.offload.passes.submit(self.inputs, self.target, self.preparation, self.model, self.ends_at)
            except CoatcheckError as error:
                self.outcomes[number] = error.slug
                continue
            self.jobs[number] = job
            self.model.put_in(("forward", number), lambda n=number: self._forward(n))  # type: ignore[misc]
        for number in range(1, self.passes + 1):
            yield from self.collect(number)

    def collect(self, number: int) -> Steps[None]:
        if number in self.outcomes:
            return
        try:
            yield from self.offload.passes.result(self.jobs[number])
        except CoatcheckError as error:
            self.outcomes[number] = error.slug
        else:
            self.outcomes[number] = "done"

    def disturb(self, name: str, disturbance: Callable[[], None], *, times: int = 1) -> None:
        """Somebody does this at any moment, and so many times."""

        def steps() -> Generator[None, None, None]:
            for _ in range(times):
                yield None
                disturbance()

        self.actors.append(Actor(name, steps()))

    def state(self) -> Hashable:
        ledger = self.offload.ledger
        report = ledger.report()
        jobs = tuple(
            (job.sequence, job.slot.number, job.stage, job.consumed, repr(job.failure), frozenset(job.holders), job.ends_at)
            for job in ledger._jobs.values()
        )
        memories = [one for held in self.memories for one in (held.inputs, held.rows, held.tag, held.device_tag, held.seen)]
        arrays = b"".join(array.tobytes() for array in (self.inputs, self.target, *memories))
        queue = tuple(job.sequence for job in ledger._queue)
        failures = tuple(failure.sequence for failure in ledger._failures)
        known = tuple(self.jobs), tuple(sorted(self.outcomes.items())), tuple(sorted(self.read.items()))
        return report.free, jobs, queue, failures, report.ended, arrays, known, self.time

    def check(self) -> None:
        """Each slot is free, or one job's, and every job in flight is one piece on the board."""
        ledger = self.offload.ledger
        slots = [slot.number for slot in ledger._free] + [job.slot.number for job in ledger._jobs.values()]
        assert sorted(slots) == list(range(self.depth))
        assert all(job.holders for job in ledger._jobs.values())
        assert self.board.reports()[0].in_flight == len(ledger._jobs)

    def outcome(self) -> Hashable:
        """How each pass ended, whether a pass that was done was computed of its own inputs, and which slots came back."""
        self.offload.ledger.reap()  # as closing does: without a worker nobody else may have come by
        own = all(self.read.get(number) == 10 * number for number, ended in self.outcomes.items() if ended == "done")
        return tuple(sorted(self.outcomes.items())), own, tuple(sorted(self.offload.report().free))

    def _forward(self, number: int) -> None:
        self.read[number] = int(self.target[0])

    def _memory(self) -> Memory[Array]:
        self.memories.append(memory(1, rows_of=np.int64))
        return self.memories[-1]
