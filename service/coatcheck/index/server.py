"""The index on a Qdrant server, in one collection for all tenants and generations."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException

from coatcheck.domain.errors import IndexUnavailable, RefusedToStart
from coatcheck.domain.passages import IndexHit, IndexPoint, RecallFilter, SparseVector, StoredPoint
from coatcheck.domain.scopes import Scope, TenantScope
from coatcheck.index import filters
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
from coatcheck.index.server_collection import LIMIT, UPSERT_BATCH, prepare

IN_MEMORY = ":memory:"
"""The client's own imitation of a server: brute force, for tests. It has no payload indexes and no strict mode."""
TIMEOUT_S = 30

T = TypeVar("T")


class ServerIndex:
    """VectorIndex over qdrant-client. Writes wait until they are applied; search is exact."""

    def __init__(self, client: AsyncQdrantClient, collection: str, *, in_memory: bool = False) -> None:
        self._client = client
        self._collection = collection
        self._exact = None if in_memory else True
        self._dense: set[str] = set()

    @classmethod
    async def open(cls, url: str, api_key: str | None, collection: str) -> ServerIndex:
        """Connects and prepares the collection: strict mode and payload indexes before any data.

        Raises RefusedToStart for a server elsewhere without a key and for a collection of another shape, IndexUnavailable
        when the server does not answer.
        """
        in_memory = url == IN_MEMORY
        if not in_memory and api_key is None and not is_loopback(url):
            raise RefusedToStart("A Qdrant server that is not on this machine needs COATCHECK_QDRANT_API_KEY.")
        client = (
            AsyncQdrantClient(IN_MEMORY)
            if in_memory
            else AsyncQdrantClient(url, api_key=api_key, timeout=TIMEOUT_S, check_compatibility=False)
        )
        index = cls(client, collection, in_memory=in_memory)
        try:
            index._dense = await _answer(prepare(client, collection, in_memory=in_memory))
        except BaseException:
            await client.close()
            raise
        return index

    async def upsert(self, scope: TenantScope, points: Sequence[IndexPoint]) -> None:
        check_tenant(scope, points)
        for length in {len(point.dense) for point in points if point.dense is not None}:
            await self._ensure_dense(length)
        for start in range(0, len(points), UPSERT_BATCH):
            batch = [_point(point) for point in points[start : start + UPSERT_BATCH]]
            await _answer(self._client.upsert(self._collection, batch, wait=True))

    async def search_dense(
        self, scope: Scope, generation: int, vector: Sequence[float], narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        readable = filters.readable(scope, generation)
        await self._ensure_dense(len(vector))
        params = models.SearchParams(exact=self._exact)
        return await self._search(list(vector), dense_name(len(vector)), readable, narrow, limit, params)

    async def search_lexical(
        self, scope: Scope, generation: int, vector: SparseVector, narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        readable = filters.readable(scope, generation)
        if not vector.indices:
            return []
        query = models.SparseVector(indices=list(vector.indices), values=list(vector.values))
        params = models.SearchParams(exact=self._exact, idf=models.IdfCorpusParams(corpus=_filter(readable)))
        return await self._search(query, LEXICAL, readable, narrow, limit, params)

    async def delete_points(self, scope: TenantScope, point_ids: Sequence[UUID]) -> None:
        for start in range(0, len(point_ids), LIMIT):
            await self._delete(filters.points(scope, point_ids[start : start + LIMIT]))

    async def delete_session(self, scope: TenantScope, session_id: UUID) -> None:
        await self._delete(filters.session(scope, session_id))

    async def delete_tenant(self, scope: TenantScope) -> None:
        await self._delete(filters.tenant(scope))

    async def set_acl(self, scope: TenantScope, session_id: UUID, acl: Sequence[str]) -> None:
        session = filters.session(scope, session_id)
        present = await _answer(
            self._client.facet(self._collection, "generation", facet_filter=_filter(session), limit=LIMIT, exact=True)
        )
        for generation in [int(hit.value) for hit in present.hits]:
            there = _filter((*session, filters.Equals("generation", generation)))
            changed = {"readers": list(readers(scope.tenant_id, generation, acl))}
            await _answer(self._client.set_payload(self._collection, changed, points=there, wait=True))

    async def retrieve(self, scope: TenantScope, point_ids: Sequence[UUID]) -> list[StoredPoint]:
        filters.tenant(scope)
        found: list[StoredPoint] = []
        for start in range(0, len(point_ids), LIMIT):
            ids: list[models.ExtendedPointId] = [str(point_id) for point_id in point_ids[start : start + LIMIT]]
            found += map(_stored, await _answer(self._client.retrieve(self._collection, ids, with_payload=STORED_FIELDS)))
        return found

    async def scroll(self, after: UUID | None = None, page_size: int = LIMIT) -> AsyncIterator[list[StoredPoint]]:
        offset: models.ExtendedPointId | None = None if after is None else str(UUID(int=after.int + 1))
        while True:
            records, following = await _answer(
                self._client.scroll(self._collection, limit=min(page_size, LIMIT), offset=offset, with_payload=STORED_FIELDS)
            )
            if records:
                yield [_stored(record) for record in records]
            if following is None:
                return
            offset = str(following)

    async def scroll_ids(
        self, scope: TenantScope, page_size: int = LIMIT, *, session_id: UUID | None = None
    ) -> AsyncIterator[list[UUID]]:
        mine = _filter(filters.tenant(scope) if session_id is None else filters.session(scope, session_id))
        offset: models.ExtendedPointId | None = None
        while True:
            records, following = await _answer(
                self._client.scroll(self._collection, mine, limit=min(page_size, LIMIT), offset=offset, with_payload=False)
            )
            if records:
                yield [UUID(str(record.id)) for record in records]
            if following is None:
                return
            offset = str(following)

    async def count(self, scope: TenantScope, session_id: UUID, generation: int) -> int:
        conditions = (*filters.session(scope, session_id), filters.Equals("generation", generation))
        return (await _answer(self._client.count(self._collection, _filter(conditions), exact=True))).count

    async def delete_generation(self, generation: int) -> None:
        await self._delete((filters.Equals("generation", generation),))

    async def flush(self) -> None:
        """The server's log is its own affair: a write that returned is there."""

    async def check(self) -> None:
        await _answer(self._client.get_collection(self._collection))

    async def close(self) -> None:
        await self._client.close()

    async def _search(
        self,
        query: list[float] | models.SparseVector,
        using: str,
        readable: tuple[Condition, ...],
        narrow: RecallFilter,
        limit: int,
        params: models.SearchParams,
    ) -> list[IndexHit]:
        """The one way in for both legs: whatever the query, what the scope may read is its filter."""
        found = await _answer(
            self._client.query_points(
                self._collection,
                query=query,
                using=using,
                query_filter=_filter((*readable, *filters.narrowing(narrow))),
                search_params=params,
                limit=min(limit, LIMIT),
                with_payload=HIT_FIELDS,
            )
        )
        return to_hits((one.score, one.payload or {}) for one in found.points)

    async def _delete(self, conditions: tuple[Condition, ...]) -> None:
        chosen = models.FilterSelector(filter=_filter(conditions))
        await _answer(self._client.delete(self._collection, chosen, wait=True))

    async def _ensure_dense(self, length: int) -> None:
        name = dense_name(length)
        if name not in self._dense:
            config = models.DenseVectorNameConfig(dense=models.DenseVectorConfig(size=length, distance=models.Distance.COSINE))
            await _answer(self._client.create_vector_name(self._collection, name, config))
            self._dense.add(name)


def is_loopback(url: str) -> bool:
    """Whether the URL names this very machine."""
    host = urlsplit(url if "//" in url else f"//{url}").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _answer(call: Awaitable[T]) -> T:
    try:
        return await call
    except ApiException as error:
        raise IndexUnavailable("The Qdrant server did not answer as it should.") from error


def _point(point: IndexPoint) -> models.PointStruct:
    vectors: dict[str, models.Vector] = {
        LEXICAL: models.SparseVector(indices=list(point.lexical.indices), values=list(point.lexical.values))
    }
    if point.dense is not None:
        vectors[dense_name(len(point.dense))] = list(point.dense)
    return models.PointStruct(id=str(point.point_id), vector=vectors, payload=to_payload(point))


def _stored(record: models.Record) -> StoredPoint:
    return to_stored(UUID(str(record.id)), record.payload or {})


def _filter(conditions: Sequence[Condition]) -> models.Filter:
    """Raises ValueError for no conditions: an empty filter matches everything."""
    one_of, others = filters.parted(conditions)
    return models.Filter(
        must=[_condition(condition) for condition in others] or None,
        should=[_condition(condition) for condition in one_of] or None,
    )


def _condition(condition: filters.Simple) -> models.FieldCondition | models.HasIdCondition:
    match condition:
        case filters.Equals(key, value):
            return models.FieldCondition(key=key, match=models.MatchValue(value=value))
        case filters.AnyOf(key, values):
            return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        case filters.AtLeast(key, value):
            return models.FieldCondition(key=key, range=models.Range(gte=value))
        case filters.AtMost(key, value):
            return models.FieldCondition(key=key, range=models.Range(lte=value))
        case filters.IdIn(ids):
            return models.HasIdCondition(has_id=[str(point_id) for point_id in ids])
