"""The index without isolation, to measure what isolation costs: no filter, no scoped statistics. For benchmarks alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import qdrant_edge as engine

from coatcheck.domain.passages import IndexHit, RecallFilter, SparseVector
from coatcheck.domain.scopes import Scope
from coatcheck.index.edge import EdgeIndex
from coatcheck.index.points import HIT_FIELDS, LEXICAL, dense_name, to_hits


class BareIndex:
    """An embedded index whose searches see everything; all else is the index's own."""

    def __init__(self, index: EdgeIndex) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    async def search_dense(
        self, _scope: Scope, _generation: int, vector: Sequence[float], _narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        return await self._search(engine.Query.Nearest(list(vector), using=dense_name(len(vector))), limit)

    async def search_lexical(
        self, _scope: Scope, _generation: int, vector: SparseVector, _narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        sparse = engine.SparseVector(list(vector.indices), list(vector.values))
        return await self._search(engine.Query.Nearest(sparse, using=LEXICAL), limit)

    async def _search(self, query: engine.Query, limit: int) -> list[IndexHit]:
        request = engine.QueryRequest(limit=limit, query=query, params=engine.SearchParams(exact=True), with_payload=HIT_FIELDS)
        found = await self._index._read(lambda: self._index._shard.query(request))
        return to_hits((one.score, one.payload or {}) for one in found)
