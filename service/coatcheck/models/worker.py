"""One model behind one thread: jobs wait in a bounded queue, take turns by micro-batches, and are answered by their deadlines.

A job owns its inputs (a copy), its results and its answer; nothing of it is shared with another. A batch never mixes jobs: an
int8 model's scores depend on the batch, so a neighbour's text could be told from them. The caller keeps the time, not the
worker's thread: a deadline, a cancellation and a shutdown reach it while the model stands still, and no failure waits behind a
result. A place in the queue is given back once, when nothing touches the job any more: at once where it only waited, when the
model lets go of it where it was being worked on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from uuid import UUID

from coatcheck.domain.errors import CoatcheckError, Overloaded, StageFailed, StageUnavailable
from coatcheck.models.lazily import loading_seen
from coatcheck.models.native import native
from coatcheck.ops.progress import Piece, ProgressBoard
from coatcheck.ops.turns import Turns

CLOSE_LIMIT_S = 10.0

I = TypeVar("I")  # noqa: E741 - what goes in, and what comes out
O = TypeVar("O")  # noqa: E741


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most of one micro-batch. A single input may be larger; it is a batch by itself."""

    inputs: int
    size: int
    """Of the inputs together, in what ``size_of`` counts."""


@dataclass(slots=True, eq=False)
class _Job(Generic[I, O]):
    owner: UUID
    inputs: tuple[I, ...]
    batches: deque[tuple[int, ...]]
    """Positions of the inputs, the longest first: what is alike in length is padded least."""
    ends_at: float
    piece: Piece
    results: dict[int, O] = field(default_factory=dict)
    answer: Future[list[O]] = field(default_factory=Future)
    holds_place: bool = False
    in_work: bool = False


class ModelWorker(Generic[I, O]):
    """Runs ``work`` on batches of inputs, in a thread of its own. Every method is safe from any thread.

    ``work`` gives one result for each input, in their order; ``sound`` says whether a result may leave. Anything else that comes
    back, and anything that is raised, is StageFailed for the job whose batch it was, and for no other.
    """

    def __init__(
        self,
        stage: str,
        work: Callable[[Sequence[I]], Sequence[O]],
        progress: ProgressBoard,
        *,
        capacity: int,
        limits: BatchLimits,
        size_of: Callable[[I], int],
        sound: Callable[[O], bool] = lambda result: True,
        worked: Callable[[UUID, float], None] = lambda owner, seconds: None,
    ) -> None:
        """``capacity``: jobs that wait or are worked on, and one of each owner besides that has none among them.

        ``worked`` is told for which owner the model worked how many seconds.
        """
        self.stage = stage
        self._work = work
        self._progress = progress
        self._capacity = capacity
        self._limits = limits
        self._size_of = size_of
        self._sound = sound
        self._worked = worked
        # Entered by itself: a thread that is ended within the condition's own, which is Python, would leave it locked.
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)
        self._outside = Turns[_Job[I, O]]()
        self._queue = Turns[_Job[I, O]]()
        self._places: Counter[UUID] = Counter()
        """By owner, how many of its jobs hold a place."""
        self._closed = False
        self._thread: threading.Thread | None = None

    async def run(self, owner: UUID, inputs: Sequence[I], limit_s: float) -> list[O]:
        """The results, in the order of the inputs. Raises StageUnavailable, and Overloaded where no place came free in time."""
        job = self._begin(owner, inputs, limit_s)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.answer), limit_s)
        except TimeoutError as error:
            raise self._late(job) from error
        finally:
            self._leave(job)

    def run_blocking(self, owner: UUID, inputs: Sequence[I], limit_s: float) -> list[O]:
        """As ``run``, for a caller that is a thread."""
        job = self._begin(owner, inputs, limit_s)
        try:
            return job.answer.result(limit_s)
        except TimeoutError as error:
            raise self._late(job) from error
        finally:
            self._leave(job)

    def close(self, limit_s: float = CLOSE_LIMIT_S) -> None:
        """Refuses what waits and what comes, and lets the batch in work end; a thread that stands still is left behind."""
        with self._lock:
            self._closed = True
            for job in [*self._outside, *self._queue]:
                self._answer(job, StageUnavailable("The service is shutting down."))
                self._leave(job)
            self._condition.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(limit_s)

    @property
    def places_taken(self) -> int:
        """How many of the queue's places are taken, by what waits and what is worked on."""
        with self._lock:
            return self._places.total()

    # --- the callers' side

    def _begin(self, owner: UUID, inputs: Sequence[I], limit_s: float) -> _Job[I, O]:
        if limit_s <= 0:
            raise StageUnavailable(f"No time is left for the stage {self.stage}.")
        if not self._progress.accepts(self.stage):
            raise StageUnavailable(f"The stage {self.stage} does not move.")
        taken = tuple(inputs)
        batches = deque(self._batches(taken))
        with self._lock:
            if self._closed:
                raise StageUnavailable("The service is shutting down.")
            job = _Job[I, O](owner, taken, batches, time.monotonic() + limit_s, self._progress.begin(self.stage))
            if batches:
                self._outside.put(owner, job)
                self._let_in()
            else:
                self._answer(job, [])
                job.piece.done()
        return job

    def _batches(self, inputs: Sequence[I]) -> list[tuple[int, ...]]:
        sizes = [self._size_of(one) for one in inputs]
        found: list[tuple[int, ...]] = []
        batch: list[int] = []
        size = 0
        for position in sorted(range(len(inputs)), key=lambda position: -sizes[position]):
            if batch and (len(batch) >= self._limits.inputs or size + sizes[position] > self._limits.size):
                found.append(tuple(batch))
                batch, size = [], 0
            batch.append(position)
            size += sizes[position]
        return [*found, tuple(batch)] if batch else found

    def _late(self, job: _Job[I, O]) -> CoatcheckError:
        with self._lock:
            if job in self._outside:
                return Overloaded(f"No place came free in the queue of the stage {self.stage} in time.")
            if job.in_work:  # until its batch, or another one, is done
                job.piece.failed()
        return self._was_late()

    def _leave(self, job: _Job[I, O]) -> None:
        """The caller waits no more. What only waited goes at once; what the model holds keeps its place until it lets go."""
        with self._lock:
            job.answer.cancel()
            job.batches.clear()
            if job in self._outside:
                self._outside.discard(job.owner, job)
                job.piece.withdraw()
            elif job.holds_place and not job.in_work:
                self._queue.discard(job.owner, job)
                job.piece.withdraw()
                self._give_back(job)

    # --- with the lock held

    def _let_in(self) -> None:
        while (job := self._outside.take(self._may_enter)) is not None:
            job.holds_place = True
            self._places[job.owner] += 1
            self._line_up(job)
        if self._queue and not self._closed and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._run, name=f"model-{self.stage}", daemon=True)
            self._thread.start()

    def _may_enter(self, owner: UUID) -> bool:
        """Long jobs of one owner would else keep everybody else out for as long as they last."""
        return self._places.total() < self._capacity or not self._places[owner]

    def _line_up(self, job: _Job[I, O]) -> None:
        self._queue.put(job.owner, job)
        self._condition.notify_all()

    def _give_back(self, job: _Job[I, O]) -> None:
        if job.holds_place:
            job.holds_place = False
            self._places -= Counter({job.owner: 1})  # who holds none is forgotten
            self._let_in()

    def _answer(self, job: _Job[I, O], answer: list[O] | CoatcheckError) -> None:
        if job.answer.done():
            return
        if isinstance(answer, CoatcheckError):
            job.answer.set_exception(answer)
        else:
            job.answer.set_result(answer)

    # --- the worker's side

    def _run(self) -> None:
        job = None
        try:
            while (job := self._next()) is not None:
                self._one_batch(job)
        finally:
            # Also of a thread that something ended from outside: its job fails, and what waits gets another thread.
            with self._lock:
                self._thread = None
                if job is not None and job.in_work:
                    self._after_batch(job, self._failed())
                self._let_in()

    def _next(self) -> _Job[I, O] | None:
        with self._lock:
            self._condition.wait_for(lambda: self._queue or self._closed)
            job = self._queue.take()
            if job is not None:
                job.in_work = True
            return job

    def _one_batch(self, job: _Job[I, O]) -> None:
        failure: CoatcheckError | None = None
        started = time.monotonic()
        try:
            with native(self.stage), loading_seen(lambda: self._progress.loading(self.stage)):
                self._work_on(job)
        except CoatcheckError as error:
            failure = error
        except BaseException as error:  # SystemExit and its like: neither this thread's end nor the process's
            failure = self._failed()
            failure.__cause__ = error
        self._worked(job.owner, time.monotonic() - started)
        self._after_batch(job, failure)

    def _work_on(self, job: _Job[I, O]) -> None:
        with self._lock:
            if time.monotonic() >= job.ends_at:
                job.batches.clear()
            if not job.batches:  # its caller has left, or is about to
                return
            batch = job.batches.popleft()
        results = list(self._work([job.inputs[position] for position in batch]))
        if len(results) != len(batch) or not all(map(self._sound, results)):
            raise StageFailed(f"The model of the stage {self.stage} gave what is no answer.")
        job.results.update(zip(batch, results, strict=True))
        job.piece.advance()

    def _after_batch(self, job: _Job[I, O], failure: CoatcheckError | None) -> None:
        with self._lock:
            job.in_work = False
            if failure is not None:
                job.piece.failed()
                self._answer(job, failure)
            elif len(job.results) == len(job.inputs):
                self._answer(job, [job.results[position] for position in range(len(job.inputs))])
            elif job.batches and not self._closed:
                self._line_up(job)
                return
            else:
                self._answer(job, StageUnavailable("The service is shutting down.") if self._closed else self._was_late())
            job.piece.done()
            self._give_back(job)

    def _failed(self) -> StageFailed:
        return StageFailed(f"The model of the stage {self.stage} failed.")

    def _was_late(self) -> StageUnavailable:
        return StageUnavailable(f"The model of the stage {self.stage} was late.")
