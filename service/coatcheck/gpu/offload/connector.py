"""The connector: the front of offload, its worker's thread, and what it is made of."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.gpu.offload.job import Compute, Failure, Job, Memory, Report, Slot
from coatcheck.gpu.offload.ledger import Ledger
from coatcheck.gpu.offload.passes import Passes
from coatcheck.gpu.offload.steps import Late, Steps, Until, drive
from coatcheck.gpu.offload.streams import B, Stream, Streams
from coatcheck.ops.progress import ProgressBoard

R = TypeVar("R")

STAGE = "offload"
CLOSE_LIMIT_S = 10.0
CLOSE_GRACE_S = 1.0


class Offload(Generic[B]):
    """Passes of a model that need rows from the CPU, several in flight. Every method is safe from any thread.

    ``depth`` is the one number: passes in flight, hence slots, events, signals, places in the queue. The board must know the stage;
    whether it is vital is the host's to say.
    """

    def __init__(
        self,
        streams: Streams[B],
        memory: Callable[[], Memory[B]],
        compute: Compute[B],
        board: ProgressBoard,
        *,
        depth: int,
        scheduler_depth: int,
        stage: str = STAGE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``memory`` makes one slot's. ``scheduler_depth``: how many passes the runtime prepares before the first is done.

        Raises RefusedToStart where that is more than ``depth``.
        """
        if depth < 1:
            raise RefusedToStart(f"Offload needs a depth of 1 or more, not {depth}.")
        if scheduler_depth > depth:
            raise RefusedToStart(
                f"The scheduler has up to {scheduler_depth} passes in flight, and offload is made for {depth}: raise its depth."
            )
        slots = [Slot(n, memory(), streams.event(), streams.event(), streams.signal()) for n in range(depth)]
        self.depth = depth
        self.ledger = Ledger(streams, slots, board, stage, monotonic)
        self.passes = Passes(streams, self.ledger, compute, streams.size(slots[0].memory.inputs))
        self._board = board
        self._stage = stage
        self._monotonic = monotonic
        self._thread = threading.Thread(target=self._work, name="offload", daemon=True)

    def start(self) -> None:
        """Starts the worker. Once."""
        self._thread.start()

    def submit(self, inputs: B, target: B, *, written_on: Stream, consumer: Stream, limit_s: float) -> Job[B]:
        """One pass: the rows of ``inputs`` will stand in ``target`` for whatever is put into ``consumer`` after this.

        ``inputs`` may be overwritten by what is put into ``written_on`` after this. ``limit_s`` is the time of the whole pass, this
        call's wait for a free slot included. Raises Overloaded (nothing has changed), StageUnavailable, InvalidRequest.
        """
        return self._driven(self.passes.submit(inputs, target, written_on, consumer, self._monotonic() + limit_s))

    def result(self, job: Job[B]) -> None:
        """Waits, within the job's time, until the consumer has read its rows. Raises what it failed of."""
        self._driven(self.passes.result(job))

    def cancel(self, job: Job[B]) -> None:
        """Nobody waits for it any more. Its slot comes back when the streams and the worker have let go."""
        self.ledger.reap()
        self.ledger.fail(job, StageUnavailable(f"Pass {job.sequence} of offload was cancelled."))

    def next_failure(self, limit_s: float) -> Failure | None:
        """The next job that failed, in the order of failing, whatever others do; None where none fails within the limit.

        A channel of its own: whoever waits for one job's result meanwhile is not in its way.
        """
        return self._driven(self._failure(self._monotonic() + limit_s))

    def moved(self) -> None:
        """The model moved: a chunk of a long prefill is done. While it says so, a pass behind it is slow and not stuck."""
        self._board.advance(self._stage)

    def report(self) -> Report:
        """Who is where, for a log and for tests."""
        return self.ledger.report()

    def close(self, limit_s: float = CLOSE_LIMIT_S) -> Report:
        """Ends it within the limit and a second. What the report still names is held by a worker or a stream that stands still."""
        ends_at = self._monotonic() + limit_s
        self._driven(self.passes.close(StageUnavailable("Offload is shutting down."), ends_at, CLOSE_GRACE_S))
        if self._thread.ident is not None:
            self._thread.join(max(0.0, ends_at - self._monotonic()))
        return self.report()

    def _work(self) -> None:
        self._driven(self.passes.work())

    def _failure(self, ends_at: float) -> Steps[Failure | None]:
        while (failure := self.ledger.take_failure()) is None:
            try:
                yield Until("a failure", self.ledger.has_failures, ends_at)
            except Late:
                return None
        return failure

    def _driven(self, steps: Steps[R]) -> R:
        return drive(steps, self.ledger.changed, self._monotonic)
