"""What the threads of offload do, step by step: the launcher's side, the worker's, and whoever waits for an outcome or the end.

A launcher touches streams and memory; the worker and the waiters touch memory alone, so that none of them can be held up by a
launch that waits for room in a stream.
"""

from __future__ import annotations

from typing import Generic

from coatcheck.domain.errors import InvalidRequest, Overloaded, StageUnavailable
from coatcheck.gpu.offload.job import Compute, Holder, Job
from coatcheck.gpu.offload.ledger import Ledger, late
from coatcheck.gpu.offload.steps import Late, Steps, Until
from coatcheck.gpu.offload.streams import B, Stream, Streams


class Passes(Generic[B]):
    """The steps of one connector; each method makes the steps of one thread's doing."""

    def __init__(self, streams: Streams[B], ledger: Ledger[B], compute: Compute[B], capacity: int) -> None:
        """``capacity``: tokens of one pass."""
        self._streams = streams
        self._ledger = ledger
        self._compute = compute
        self._capacity = capacity

    def submit(self, inputs: B, target: B, written_on: Stream, consumer: Stream, ends_at: float) -> Steps[Job[B]]:
        """Admits, takes the snapshot, and has the consumer wait for the rows. Raises Overloaded where no slot came free in time,
        and then has changed nothing."""
        size = self._streams.size(inputs)
        if not 0 < size <= self._capacity:
            raise InvalidRequest(f"A pass of {size} tokens: offload takes 1 to {self._capacity}.")
        job = yield from self._admitted(size, ends_at)
        try:
            yield from self._launched(job, inputs, target, written_on, consumer)
        except BaseException as error:
            # What of it the streams have taken is not known, so the slot stays with its launcher; nothing else may come in.
            failure = StageUnavailable("A pass of offload could not be launched.")
            failure.__cause__ = error
            self._ledger.end(failure)
            raise
        self._ledger.let_go(job, Holder.LAUNCHER)
        return job

    def result(self, job: Job[B]) -> Steps[None]:
        """Returns when the consumer has read the job's own rows, and raises what the job failed of."""
        while not job.settled:
            try:
                yield Until("rows", lambda: job.settled or self._ledger.has_passed(), job.ends_at, polled=True)
            except Late:
                self._ledger.fail(job, late(job))
            self._ledger.reap()
        if job.failure is not None:
            raise job.failure

    def work(self) -> Steps[None]:
        """The worker's thread, until nothing comes any more. However it ends, all that was not settled fails."""
        why = StageUnavailable("Offload has no worker any more.")
        try:
            while not self._ledger.is_over():
                job = self._ledger.next()
                if job is not None:
                    yield from self._served(job)
                else:
                    yield Until("a pass", self._ledger.is_busy)
                    yield Until("inputs", self._ledger.has_work, polled=True)
        except Exception as error:
            why.__cause__ = error
            raise
        finally:
            self._ledger.end(why, worker_left=True)

    def close(self, why: StageUnavailable, ends_at: float, grace_s: float) -> Steps[None]:
        """What only waits fails at once, what is further has until ``ends_at``, then fails too; ``grace_s`` longer the streams have
        to let go."""
        self._ledger.close(why)
        yield from self._released(ends_at)
        self._ledger.end(why)
        yield from self._released(ends_at + grace_s)

    def _admitted(self, size: int, ends_at: float) -> Steps[Job[B]]:
        while (job := self._ledger.admit(size, ends_at)) is None:
            try:
                yield Until("a slot", self._ledger.has_room, ends_at, polled=True)
            except Late:
                raise Overloaded("All passes of offload are taken.") from None
        return job

    def _launched(self, job: Job[B], inputs: B, target: B, written_on: Stream, consumer: Stream) -> Steps[None]:
        streams, slot, memory = self._streams, job.slot, job.slot.memory
        yield None
        streams.copy(written_on, inputs, streams.part(memory.inputs, job.size))
        streams.record(written_on, slot.inputs_ready)
        yield None
        self._ledger.queue(job)
        yield None
        streams.wait_signal(consumer, slot.rows_ready, job.sequence)
        streams.copy(consumer, streams.part(memory.rows, job.size), target)
        # The tag goes the rows' way, behind them, so that what comes back tells which rows they were.
        streams.copy(consumer, memory.tag, memory.device_tag)
        streams.copy(consumer, memory.device_tag, memory.seen)
        streams.record(consumer, slot.consumed)
        yield None

    def _served(self, job: Job[B]) -> Steps[None]:
        yield None
        if not job.settled:
            memory = job.slot.memory
            try:
                self._compute(self._streams.part(memory.inputs, job.size), self._streams.part(memory.rows, job.size))
            except Exception as error:
                failure = StageUnavailable(f"The rows of pass {job.sequence} could not be computed.")
                failure.__cause__ = error
                self._ledger.fail(job, failure, broken=True)
        yield None
        self._ledger.offer(job)

    def _released(self, ends_at: float) -> Steps[None]:
        while not self._ledger.is_empty():
            try:
                yield Until("the last pass", lambda: self._ledger.is_empty() or self._ledger.has_passed(), ends_at, polled=True)
            except Late:
                return
            self._ledger.reap()
