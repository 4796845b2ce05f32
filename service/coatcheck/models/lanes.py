"""The embedder behind worker threads: queries pass ahead of ingest, work waits in a bounded queue, nothing waits for ever.

There are as many workers as the embedder has threads, so that none of these waits for another one's text. The first of several is
for queries, and takes ingest while nobody asks; the others are for ingest, ask the machine for less than those who wait for an
answer, and take queries while the first is at work. A call for many texts becomes small batches, one for each worker in the queue
at a time: so calls take turns, a query waits for one small batch at most, and a caller that leaves takes its rest along. Within a
lane tenants take turns, however many calls each has; and queries that never end pass ahead of a waiting batch ``QUERIES_IN_A_ROW``
times, no more.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeVar
from uuid import UUID

from coatcheck.domain.errors import CoatcheckError, Overloaded, StageUnavailable
from coatcheck.domain.ports import Embedder
from coatcheck.domain.scopes import TenantScope
from coatcheck.models.batching import batches_of, together
from coatcheck.models.lazily import loading_seen
from coatcheck.models.native import native
from coatcheck.ops.priority import give_way
from coatcheck.ops.progress import Piece, ProgressBoard
from coatcheck.ops.turns import Turns

STAGE = "embed"
BATCH_CHARS = 4_000
"""About two passages of 512 tokens: some 70 ms on two cores, which is what a query may have to wait."""
BATCH_CHARS_WHILE_ASKED = 1_000
"""One passage of usual length, while somebody asks: a neighbour's query is not to wait for two."""
ASKED_RECENTLY_S = 10.0
OFFSET_CHARS = 16_000
"""Spans of tokens come thirty times faster than vectors."""
QUERIES_IN_A_ROW = 4
"""Beyond it whoever asks without a pause would keep everybody's windows from being indexed."""
LOOK_S = 0.5
"""How often a worker that is kept for queries looks whether anybody still asks."""
CLOSE_LIMIT_S = 10.0
INGEST_NICENESS = 5
"""Nobody's question waits for it."""

T = TypeVar("T")
R = TypeVar("R")


class _Lane(IntEnum):
    QUERY = 0
    INGEST = 1


@dataclass(eq=False, slots=True)
class _Job:
    lane: _Lane
    tenant_id: UUID
    piece: Piece
    work: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


class EmbeddingLanes:
    """EmbeddingLanes port over an Embedder."""

    def __init__(
        self,
        embedder: Embedder,
        progress: ProgressBoard,
        *,
        batch: int = 8,
        max_waiting: int = 256,
        query_limit_s: float = 10.0,
        batch_limit_s: float = 120.0,
        worked: Callable[[UUID, float], None] = lambda tenant_id, seconds: None,
    ) -> None:
        """``batch`` texts at most at a time; ``max_waiting`` calls at most; limits in seconds from asking to having.

        ``worked`` is told, by a worker's thread, for which tenant it worked how many seconds of the whole embedder.
        """
        self.revision = embedder.revision
        self.dimensions = embedder.dimensions
        self.input_tokens = embedder.input_tokens
        self._embedder = embedder
        self._progress = progress
        self._batch = batch
        self._max_waiting = max_waiting
        self._query_limit_s = query_limit_s
        self._batch_limit_s = batch_limit_s
        # Entered by itself: a thread that is ended within the condition's own, which is Python, would leave it locked.
        self._lock = threading.RLock()
        self._for_first, self._for_others = threading.Condition(self._lock), threading.Condition(self._lock)
        self._waiting = {lane: Turns[_Job]() for lane in _Lane}
        self._worked = worked
        self._calls = 0
        self._closed = False
        self._in_work: list[Piece] = []
        """Once for each batch that a worker works on."""
        self._passed = 0
        """How many queries began in a row while ingest waited."""
        self._first_works = False
        self._left_behind: set[Piece] = set()
        """Of those, the ones whose caller has left: a piece ends when the model lets go of it."""
        self._asked_at = -ASKED_RECENTLY_S
        self._workers: list[threading.Thread] = []

    async def token_offsets(self, scope: TenantScope, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Raises StageUnavailable, Overloaded."""
        return await self._ingest(scope, texts, list(range(len(texts))), self._embedder.token_offsets, OFFSET_CHARS, len(texts))

    async def embed_passages(self, scope: TenantScope, texts: Sequence[str]) -> list[list[float]]:
        """Raises StageUnavailable, Overloaded."""
        longest_first = sorted(range(len(texts)), key=lambda position: -len(texts[position]))
        return await self._ingest(scope, texts, longest_first, self._embedder.embed_passages, BATCH_CHARS, self._batch)

    async def embed_query(self, scope: TenantScope, text: str) -> list[float]:
        """Raises StageUnavailable, Overloaded."""
        self._asked_at = time.monotonic()
        with self._call() as piece:
            return await self._ask(scope, piece, _Lane.QUERY, lambda: self._embedder.embed_query(text), self._query_limit_s)

    async def close(self, limit_s: float = CLOSE_LIMIT_S) -> None:
        """Refuses what waits and what comes, and lets the batch in work end; a thread that stands still is left behind."""
        with self._lock:
            self._closed = True
            left = [job for waiting in self._waiting.values() for job in waiting.clear()]
            self._for_first.notify_all()
            self._for_others.notify_all()
        for job in left:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(StageUnavailable("The service is shutting down."))
        await asyncio.to_thread(self._join, time.monotonic() + limit_s)

    def _join(self, ends_at: float) -> None:
        for worker in self._workers:
            worker.join(max(0.0, ends_at - time.monotonic()))

    async def _ingest(
        self,
        scope: TenantScope,
        texts: Sequence[str],
        order: Sequence[int],
        work: Callable[[Sequence[str]], list[R]],
        max_chars: int,
        max_texts: int,
    ) -> list[R]:
        results: dict[int, R] = {}
        batches = batches_of(texts, order, lambda: self._most_chars(max_chars), max_texts)

        async def work_off(piece: Piece) -> None:
            for positions in batches:
                batch = [texts[position] for position in positions]
                found = await self._ask(scope, piece, _Lane.INGEST, lambda batch=batch: work(batch), self._batch_limit_s)  # type: ignore[misc]
                results.update(zip(positions, found, strict=True))
                piece.advance()

        with self._call() as piece:
            await together([work_off(piece) for _ in range(self._embedder.threads)])
        return [results[position] for position in range(len(texts))]

    def _most_chars(self, max_chars: int) -> int:
        """Of the next batch of vectors; spans of tokens keep no query waiting."""
        return BATCH_CHARS_WHILE_ASKED if self._is_asked() and max_chars == BATCH_CHARS else max_chars

    @contextmanager
    def _call(self) -> Iterator[Piece]:
        with self._lock:
            if self._closed:
                raise StageUnavailable("The service is shutting down.")
            if self._calls >= self._max_waiting:
                raise Overloaded("More texts wait to be embedded than can be taken on.")
            self._calls += 1
        try:
            if not self._progress.accepts(STAGE):
                raise StageUnavailable("The embedder does not move.")
            piece = self._progress.begin(STAGE)
            try:
                yield piece
            except BaseException:
                self._leave(piece)
                raise
            piece.done()
        finally:
            with self._lock:
                self._calls -= 1

    def _leave(self, piece: Piece) -> None:
        """A caller that goes without its answer is no sign that the model moves."""
        with self._lock:
            if piece in self._in_work:
                self._left_behind.add(piece)
            else:
                piece.withdraw()

    async def _ask(self, scope: TenantScope, piece: Piece, lane: _Lane, work: Callable[[], R], limit_s: float) -> R:
        with self._lock:
            if self._closed:
                raise StageUnavailable("The service is shutting down.")
            job = _Job(lane, scope.tenant_id, piece, work)
            self._waiting[lane].put(scope.tenant_id, job)
            self._man()
            self._wake()
        try:
            found: R = await asyncio.wait_for(asyncio.wrap_future(job.future), limit_s)
        except TimeoutError as error:
            raise StageUnavailable("The embedder was late.") from error
        finally:
            self._forget(job)
        return found

    def _forget(self, job: _Job) -> None:
        """Takes a job whose caller has left out of the queue, so that its text is not kept by a worker that stands still."""
        with self._lock:
            if job.future.cancelled():
                self._waiting[job.lane].discard(job.tenant_id, job)

    def _wake(self) -> None:
        """One worker of each kind looks whether there is something for it. With the lock held."""
        self._for_first.notify()
        self._for_others.notify()

    def _man(self) -> None:
        """Starts what workers there are to be, also for one that something ended from outside. With the lock held."""
        for position in range(self._embedder.threads):
            if position < len(self._workers) and self._workers[position].is_alive():
                continue
            worker = threading.Thread(target=self._run, args=(position == 0,), name="embedding", daemon=True)
            worker.start()
            self._workers[position : position + 1] = [worker]

    def _run(self, is_first: bool) -> None:
        if not is_first:
            give_way(INGEST_NICENESS)
        while (job := self._next(is_first)) is not None:
            try:
                # False for a caller that has left: a cancelled or late one waits for nothing any more.
                if job.future.set_running_or_notify_cancel():
                    self._finish(job)
            finally:
                self._let_go(job, is_first)

    def _next(self, is_first: bool) -> _Job | None:
        with self._lock:
            while (job := self._take(is_first)) is None and not self._closed:
                looks_again = self._waiting[_Lane.INGEST]
                (self._for_first if is_first else self._for_others).wait(LOOK_S if looks_again else None)
            if job is not None:
                self._passed = self._passed + 1 if job.lane is _Lane.QUERY and self._waiting[_Lane.INGEST] else 0
                self._in_work.append(job.piece)
                self._first_works |= is_first
                self._for_others.notify()  # the next query, if there is one, is theirs
            return job

    def _take(self, is_first: bool) -> _Job | None:
        """The next job for this worker. With the lock held."""
        query, ingest = self._waiting[_Lane.QUERY], self._waiting[_Lane.INGEST]
        may_query = is_first or self._first_works
        may_ingest = not is_first or self._embedder.threads == 1 or not self._is_asked()
        if may_query and query and not (may_ingest and ingest and self._passed >= QUERIES_IN_A_ROW):
            return query.take()
        return ingest.take() if may_ingest else None

    def _let_go(self, job: _Job, is_first: bool) -> None:
        with self._lock:
            self._first_works &= not is_first
            self._in_work.remove(job.piece)
            if job.piece in self._left_behind and job.piece not in self._in_work:
                self._left_behind.discard(job.piece)
                job.piece.done()
            self._wake()

    def _is_asked(self) -> bool:
        return time.monotonic() - self._asked_at < ASKED_RECENTLY_S

    def _finish(self, job: _Job) -> None:
        started = time.monotonic()
        try:
            with native(STAGE), loading_seen(lambda: self._progress.loading(STAGE)):
                result = job.work()
        except BaseException as error:  # SystemExit and its like too: neither this thread's end nor the process's
            self._charge(job, time.monotonic() - started)
            job.piece.failed()
            failed = StageUnavailable("The embedder failed.")
            failed.__cause__ = error
            job.future.set_exception(error if isinstance(error, CoatcheckError) else failed)
        else:
            self._charge(job, time.monotonic() - started)
            job.piece.advance()
            job.future.set_result(result)

    def _charge(self, job: _Job, seconds: float) -> None:
        self._worked(job.tenant_id, seconds / self._embedder.threads)
