"""The ledger of offload: which job owns which slot, who still touches it, and how each job ended.

Every method is one critical section. A slot goes back once, when the last of its holders has let go: a job that failed, was
cancelled or came late keeps its slot for as long as a stream or the worker can still touch it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic

from coatcheck.domain.errors import CoatcheckError, StageUnavailable
from coatcheck.gpu.offload.job import Failure, Holder, Job, JobReport, Report, Slot, Stage
from coatcheck.gpu.offload.streams import B, Streams
from coatcheck.ops.progress import ProgressBoard

UNREAD_FAILURES = 1_024
"""How many failures wait to be read; a job keeps its own in any case."""


class Ledger(Generic[B]):
    """Safe from any thread; ``changed`` is notified of every change that the host makes."""

    def __init__(
        self, streams: Streams[B], slots: list[Slot[B]], board: ProgressBoard, stage: str, monotonic: Callable[[], float]
    ) -> None:
        self.changed = threading.Condition()
        self.ended: CoatcheckError | None = None
        """Why nothing comes in any more."""
        self._streams = streams
        self._board = board
        self._stage = stage
        self._monotonic = monotonic
        self._free = deque(slots)
        self._queue: list[Job[B]] = []
        self._jobs: dict[int, Job[B]] = {}
        self._failures: deque[Failure] = deque(maxlen=UNREAD_FAILURES)
        self._sequence = 0

    # --- conditions: quick, without effect

    def has_room(self) -> bool:
        return self.ended is not None or bool(self._free) or self.has_passed()

    def is_busy(self) -> bool:
        return bool(self._jobs) or self.ended is not None

    def is_over(self) -> bool:
        """Whether nothing comes in any more and nothing is left that needs a worker."""
        return self.ended is not None and all(job.settled for job in self._jobs.values())

    def is_empty(self) -> bool:
        return not self._jobs

    def has_failures(self) -> bool:
        return bool(self._failures)

    def has_work(self) -> bool:
        now = self._monotonic()
        due = any(job.ends_at <= now or self._streams.completed(job.slot.inputs_ready) for job in self._queue)
        return due or self.has_passed() or self.is_over()

    def has_passed(self) -> bool:
        """Whether a stream has passed something that the ledger does not know of yet."""
        return any(self._passed(job) for job in self._jobs.values())

    # --- the launcher's side

    def admit(self, size: int, ends_at: float) -> Job[B] | None:
        """Queue place, slot, events and signal in one: a job that owns them, or None, and nothing has changed."""
        with self.changed:
            self.reap()
            if self.ended is not None:
                raise StageUnavailable(self.ended.detail)
            if not self._free:
                return None
            self._sequence += 1
            piece = self._board.begin(self._stage)
            job = Job(self._sequence, size, ends_at, self._free.popleft(), piece, self._monotonic())
            self._jobs[job.sequence] = job
            return job

    def queue(self, job: Job[B]) -> None:
        """Its inputs are on their way. It has had its place since it was admitted, so that this cannot fail."""
        with self.changed:
            if not job.settled:
                self._enter(job, Stage.QUEUED)
                self._queue.append(job)
            else:
                self._let_go(job, Holder.WORKER)

    # --- the worker's side

    def next(self) -> Job[B] | None:
        """The first job whose inputs are there: one that waits for its inputs stands in nobody's way."""
        with self.changed:
            self.reap()
            now = self._monotonic()
            for job in [job for job in self._queue if job.ends_at <= now]:
                self.fail(job, late(job))
            for job in self._queue:
                if self._streams.completed(job.slot.inputs_ready):
                    self._queue.remove(job)
                    self._enter(job, Stage.COMPUTING)
                    job.piece.advance()
                    return job
            return None

    def offer(self, job: Job[B]) -> None:
        """The worker has written the rows, and touches them no more."""
        with self.changed:
            if not job.settled:
                self._enter(job, Stage.CONSUMING)
                self._streams.stamp(job.slot.memory.tag, job.sequence)
                self._streams.raise_signal(job.slot.rows_ready, job.sequence)
                job.piece.advance()
            self._let_go(job, Holder.WORKER)

    # --- anybody's

    def let_go(self, job: Job[B], holder: Holder) -> None:
        with self.changed:
            self._let_go(job, holder)

    def fail(self, job: Job[B], error: CoatcheckError, *, broken: bool = False) -> None:
        """Its failure is readable at once, whatever other jobs do, and the stream that waits for its rows is let through: it
        reads a tag that says there are none. ``broken``: the stage failed at it. What is settled stays as it is."""
        with self.changed:
            if job.settled:
                return
            job.failure = error
            self._failures.append(Failure(job.sequence, error))
            if broken:
                job.piece.failed()
            self._streams.stamp(job.slot.memory.tag, -job.sequence)
            self._streams.raise_signal(job.slot.rows_ready, job.sequence)
            if job in self._queue:
                self._queue.remove(job)
                self._let_go(job, Holder.WORKER)
            self.changed.notify_all()

    def reap(self) -> None:
        """Takes note of what the streams have passed."""
        with self.changed:
            for job in list(self._jobs.values()):
                if self._snapshot_passed(job):
                    self._let_go(job, Holder.SNAPSHOT)
                if self._consumer_passed(job):
                    self._settle_consumed(job)
                    self._let_go(job, Holder.CONSUMER)

    def end(self, why: CoatcheckError, *, worker_left: bool = False) -> None:
        """Nothing comes in any more, and every job that is not settled fails. ``worker_left``: no thread touches a slot now."""
        with self.changed:
            self.reap()
            if worker_left and self.ended is None:
                self._board.fail(self._stage)
            self.ended = self.ended or why
            for job in list(self._jobs.values()):
                self.fail(job, why)
                if worker_left and job.stage is not Stage.LAUNCHING:
                    self._let_go(job, Holder.WORKER)
            self.changed.notify_all()

    def close(self, why: CoatcheckError) -> None:
        """Nothing comes in any more, and what only waited fails; what is further goes on."""
        with self.changed:
            self.reap()
            self.ended = self.ended or why
            for job in list(self._queue):
                self.fail(job, why)
            self.changed.notify_all()

    def take_failure(self) -> Failure | None:
        with self.changed:
            return self._failures.popleft() if self._failures else None

    def report(self) -> Report:
        with self.changed:
            now = self._monotonic()
            jobs = tuple(
                JobReport(job.sequence, job.stage, now - job.stage_since, job.settled, frozenset(job.holders))
                for job in self._jobs.values()
            )
            return Report(tuple(slot.number for slot in self._free), jobs, self.ended is not None)

    # --- with the condition held

    def _passed(self, job: Job[B]) -> bool:
        return self._snapshot_passed(job) or self._consumer_passed(job)

    def _snapshot_passed(self, job: Job[B]) -> bool:
        return Holder.SNAPSHOT in job.holders and self._launched(job) and self._streams.completed(job.slot.inputs_ready)

    def _consumer_passed(self, job: Job[B]) -> bool:
        return Holder.CONSUMER in job.holders and self._launched(job) and self._streams.completed(job.slot.consumed)

    def _launched(self, job: Job[B]) -> bool:
        """Before that its events may still stand for the recordings of the slot's last owner, and those are complete."""
        return Holder.LAUNCHER not in job.holders

    def _settle_consumed(self, job: Job[B]) -> None:
        if job.settled:
            return
        seen = self._streams.stamped(job.slot.memory.seen)
        if seen == job.sequence:
            job.consumed = True
            job.piece.advance()
        else:
            self.fail(job, StageUnavailable(f"The rows of pass {seen} were read for pass {job.sequence}."), broken=True)

    def _enter(self, job: Job[B], stage: Stage) -> None:
        job.stage, job.stage_since = stage, self._monotonic()
        self.changed.notify_all()

    def _let_go(self, job: Job[B], holder: Holder) -> None:
        if holder not in job.holders:
            return
        job.holders.remove(holder)
        if not job.holders:
            worked_on = job.stage in (Stage.COMPUTING, Stage.CONSUMING)
            self._enter(job, Stage.RELEASED)
            del self._jobs[job.sequence]
            self._free.append(job.slot)
            if worked_on:
                job.piece.done()
            else:
                job.piece.withdraw()
        self.changed.notify_all()


def late(job: Job[B]) -> StageUnavailable:
    return StageUnavailable(f"Pass {job.sequence} of offload was not done in time.")
