"""The embedded index: the Qdrant engine in this process, behind threads of its own, since it knows no asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import qdrant_edge as engine

from coatcheck.domain.errors import IndexUnavailable
from coatcheck.domain.identifiers import utc_now
from coatcheck.domain.passages import IndexHit, IndexPoint, RecallFilter, SparseVector, StoredPoint
from coatcheck.domain.ports import Clock
from coatcheck.domain.scopes import Scope, TenantScope
from coatcheck.index import filters
from coatcheck.index.edge_folder import EdgeFolder, OpenedShard, add_dense, translate
from coatcheck.index.filters import Condition
from coatcheck.index.points import (
    HIT_FIELDS,
    LEXICAL,
    STORED_FIELDS,
    check_tenant,
    dense_name,
    readers,
    to_hits,
    to_payload,
    to_stored,
)  # fmt: skip

UPSERT_BATCH = 500
GENERATIONS = 100
"""More than a session's points are ever of at once."""
READERS = 2
"""Threads that search. The engine holds the interpreter lock for each call (measured, 0.9.0), so a search is to be short."""

T = TypeVar("T")


class EdgeIndex:
    """VectorIndex over one shard. Writes go through one thread in their order; searches are exact and run beside them."""

    def __init__(self, folder: EdgeFolder, opened: OpenedShard, clock: Clock) -> None:
        self._folder = folder
        self._shard = opened.shard
        self._clock = clock
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="index-write")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="index-read")
        self._dense: set[int] = set()
        self._unflushed = False
        self._closed = False
        self.was_clean = opened.was_clean
        """Whether the process before this one closed the index."""
        self.flushed_at = opened.flushed_at
        """Up to when its writes are known to be on the disk."""

    @classmethod
    def open(cls, path: Path, clock: Clock = utc_now) -> EdgeIndex:
        """Loads or makes the index in this folder; takes a while for a large one. Raises RefusedToStart."""
        folder = EdgeFolder(path)
        return cls(folder, folder.open(), clock)

    async def upsert(self, scope: TenantScope, points: Sequence[IndexPoint]) -> None:
        check_tenant(scope, points)

        def work() -> None:
            for length in {len(point.dense) for point in points if point.dense is not None}:
                self._ensure_dense(length)
            for start in range(0, len(points), UPSERT_BATCH):
                batch = [_point(point) for point in points[start : start + UPSERT_BATCH]]
                self._shard.update(engine.UpdateOperation.upsert_points(batch))

        if points:
            await self._write(work)

    async def search_dense(
        self, scope: Scope, generation: int, vector: Sequence[float], narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        readable = filters.readable(scope, generation)
        if len(vector) not in self._dense:
            await self._write(lambda: self._ensure_dense(len(vector)))
        query = engine.Query.Nearest(list(vector), using=dense_name(len(vector)))
        return await self._search(query, readable, narrow, limit, engine.SearchParams(exact=True))

    async def search_lexical(
        self, scope: Scope, generation: int, vector: SparseVector, narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        readable = filters.readable(scope, generation)
        if not vector.indices:
            return []
        query = engine.Query.Nearest(engine.SparseVector(list(vector.indices), list(vector.values)), using=LEXICAL)
        corpus = engine.IdfParams(corpus=_filter(readable))
        return await self._search(query, readable, narrow, limit, engine.SearchParams(exact=True, idf=corpus))

    async def delete_points(self, scope: TenantScope, point_ids: Sequence[UUID]) -> None:
        if point_ids:
            await self._delete(filters.points(scope, point_ids))

    async def delete_session(self, scope: TenantScope, session_id: UUID) -> None:
        await self._delete(filters.session(scope, session_id))

    async def delete_tenant(self, scope: TenantScope) -> None:
        await self._delete(filters.tenant(scope))

    async def set_acl(self, scope: TenantScope, session_id: UUID, acl: Sequence[str]) -> None:
        session = filters.session(scope, session_id)

        def work() -> None:
            present = self._shard.facet(engine.FacetRequest("generation", limit=GENERATIONS, exact=True, filter=_filter(session)))
            for generation in [int(hit.value) for hit in present.hits]:
                there = _filter((*session, filters.Equals("generation", generation)))
                changed = {"readers": list(readers(scope.tenant_id, generation, acl))}
                self._shard.update(engine.UpdateOperation.set_payload_by_filter(there, changed))

        await self._write(work)

    async def retrieve(self, scope: TenantScope, point_ids: Sequence[UUID]) -> list[StoredPoint]:
        filters.tenant(scope)

        def work() -> list[StoredPoint]:
            records = self._shard.retrieve(list(point_ids), with_payload=STORED_FIELDS, with_vector=False)
            return [_stored(record) for record in records]

        return await self._read(work)

    async def scroll(self, after: UUID | None = None, page_size: int = 1_000) -> AsyncIterator[list[StoredPoint]]:
        offset: int | UUID | str | None = None
        if after is not None:
            offset = UUID(int=after.int + 1)
        while True:
            request = engine.ScrollRequest(offset=offset, limit=page_size, with_payload=STORED_FIELDS, with_vector=False)
            page, offset = await self._read(partial(self._scrolled, request, _stored))
            if page:
                yield page
            if offset is None:
                return

    async def scroll_ids(
        self, scope: TenantScope, page_size: int = 1_000, *, session_id: UUID | None = None
    ) -> AsyncIterator[list[UUID]]:
        mine = _filter(filters.tenant(scope) if session_id is None else filters.session(scope, session_id))
        offset: engine.PointId | None = None
        while True:
            request = engine.ScrollRequest(offset=offset, limit=page_size, filter=mine, with_payload=False, with_vector=False)
            page, offset = await self._read(partial(self._scrolled, request, _id_of))
            if page:
                yield page
            if offset is None:
                return

    async def count(self, scope: TenantScope, session_id: UUID, generation: int) -> int:
        conditions = (*filters.session(scope, session_id), filters.Equals("generation", generation))
        return await self._read(lambda: self._shard.count(engine.CountRequest(exact=True, filter=_filter(conditions))))

    async def delete_generation(self, generation: int) -> None:
        await self._delete((filters.Equals("generation", generation),))

    async def flush(self) -> None:
        """Brings every write before this call to the disk. Nothing to do where nothing was written since the last time."""

        def work() -> None:
            if self._unflushed:
                started_at = self._clock()
                self._unflushed = False
                self._shard.flush()
                self._folder.mark_flushed(started_at)

        await self._run(self._writer, work)

    async def vacuum(self) -> bool:
        """Rewrites the engine's files without deleted points, where enough were deleted. Blocks writes meanwhile."""
        return await self._run(self._writer, self._shard.optimize)

    async def check(self) -> None:
        await self._read(self._shard.info)

    async def close(self) -> None:
        """Waits for what runs, flushes, and leaves the mark of a clean stop. A second call does nothing."""
        if self._closed:
            return
        self._closed = True

        def work() -> None:
            self._readers.shutdown(wait=True)
            started_at = self._clock()
            self._shard.flush()
            self._shard.close()
            self._folder.mark_flushed(started_at)
            self._folder.mark_clean()

        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, lambda: translate(work, _unavailable))
        self._writer.shutdown(wait=False)

    async def _search(
        self,
        query: engine.Query,
        readable: tuple[Condition, ...],
        narrow: RecallFilter,
        limit: int,
        params: engine.SearchParams,
    ) -> list[IndexHit]:
        """The one way in for both legs: whatever the query, what the scope may read is its filter."""
        request = engine.QueryRequest(
            limit=limit,
            query=query,
            filter=_filter((*readable, *filters.narrowing(narrow))),
            params=params,
            with_payload=HIT_FIELDS,
        )
        found = await self._read(lambda: self._shard.query(request))
        return to_hits((one.score, one.payload or {}) for one in found)

    def _scrolled(self, request: engine.ScrollRequest, of: Callable[[engine.Record], T]) -> tuple[list[T], engine.PointId | None]:
        records, offset = self._shard.scroll(request)
        return [of(record) for record in records], offset

    async def _delete(self, conditions: tuple[Condition, ...]) -> None:
        operation = engine.UpdateOperation.delete_points_by_filter(_filter(conditions))
        await self._write(lambda: self._shard.update(operation))

    def _ensure_dense(self, length: int) -> None:
        if length not in self._dense:
            add_dense(self._shard, length)
            self._dense.add(length)

    async def _write(self, work: Callable[[], None]) -> None:
        def marked() -> None:
            self._unflushed = True
            work()

        await self._run(self._writer, marked)

    async def _read(self, work: Callable[[], T]) -> T:
        return await self._run(self._readers, work)

    async def _run(self, executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        if self._closed:
            raise IndexUnavailable("The index is closed.")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor, lambda: translate(work, _unavailable))


def _unavailable(error: Exception) -> IndexUnavailable:
    return IndexUnavailable("The embedded index refused an operation.")


def _point(point: IndexPoint) -> engine.Point:
    vectors: dict[str, list[float] | engine.SparseVector | list[list[float]]] = {
        LEXICAL: engine.SparseVector(list(point.lexical.indices), list(point.lexical.values))
    }
    if point.dense is not None:
        vectors[dense_name(len(point.dense))] = list(point.dense)
    return engine.Point(point.point_id, vectors, to_payload(point))


def _stored(record: engine.Record) -> StoredPoint:
    return to_stored(_id_of(record), record.payload or {})


def _id_of(record: engine.Record) -> UUID:
    return record.id if isinstance(record.id, UUID) else UUID(str(record.id))


def _filter(conditions: Sequence[Condition]) -> engine.Filter:
    """Raises ValueError for no conditions: an empty filter matches everything."""
    one_of, others = filters.parted(conditions)
    return engine.Filter(
        must=[_condition(condition) for condition in others] or None,
        should=[_condition(condition) for condition in one_of] or None,
    )


def _condition(condition: filters.Simple) -> engine.FieldCondition | engine.HasIdCondition:
    match condition:
        case filters.Equals(key, value):
            return engine.FieldCondition(key, match=engine.MatchValue(value))
        case filters.AnyOf(key, values):
            return engine.FieldCondition(key, match=engine.MatchAny(list(values)))
        case filters.AtLeast(key, value):
            return engine.FieldCondition(key, range=engine.RangeFloat(gte=value))
        case filters.AtMost(key, value):
            return engine.FieldCondition(key, range=engine.RangeFloat(lte=value))
        case filters.IdIn(ids):
            return engine.HasIdCondition(set(ids))
