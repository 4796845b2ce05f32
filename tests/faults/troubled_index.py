"""An index with trouble on order: the real one, behind the port, refusing, slow, or writing half.

The index server is another process in production, and none of our layers: this double stands where its network would fail.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from coatcheck.domain.errors import IndexUnavailable
from coatcheck.domain.passages import IndexHit, IndexPoint, RecallFilter, SparseVector, StoredPoint
from coatcheck.domain.ports import VectorIndex
from coatcheck.domain.scopes import Scope, TenantScope
from coatcheck.ops.faults import Hold


class TroubledIndex:
    """VectorIndex over another, which does as the test says until ``calm``."""

    def __init__(self, index: VectorIndex) -> None:
        self._index = index
        self.upserts = self.acl_changes = 0
        """How many of each have begun."""
        self.calm()

    def calm(self) -> None:
        """No trouble from here on."""
        self.gone = False
        """Nothing is answered."""
        self.refuses_writes = False
        self.half_written = False
        """Of the points of an upsert only half arrive, and then the connection is lost."""
        self.poison: frozenset[str] = frozenset()
        """Segments whose points are always refused."""
        self._hold: Hold | None = None

    @asynccontextmanager
    async def first_write_held(self) -> AsyncIterator[Hold]:
        """The first write of points or readers is under way until the test lets it arrive; later ones overtake it."""
        self._hold = Hold(first_alone=True)
        try:
            yield self._hold
        finally:
            self._hold.release()

    async def upsert(self, scope: TenantScope, points: Sequence[IndexPoint]) -> None:
        self.upserts += 1
        self._writable()
        if any(point.exact_sha256 in self.poison for point in points):
            raise IndexUnavailable("The index refused a point.")
        if self._hold is not None:
            await self._hold.arrive()
        if self.half_written:
            await self._index.upsert(scope, points[: (len(points) + 1) // 2])
            raise IndexUnavailable("The connection to the index was lost.")
        await self._index.upsert(scope, points)

    async def search_dense(
        self, scope: Scope, generation: int, vector: Sequence[float], narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        self._there()
        return await self._index.search_dense(scope, generation, vector, narrow, limit)

    async def search_lexical(
        self, scope: Scope, generation: int, vector: SparseVector, narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        self._there()
        return await self._index.search_lexical(scope, generation, vector, narrow, limit)

    async def delete_points(self, scope: TenantScope, point_ids: Sequence[UUID]) -> None:
        self._writable()
        await self._index.delete_points(scope, point_ids)

    async def delete_session(self, scope: TenantScope, session_id: UUID) -> None:
        self._writable()
        await self._index.delete_session(scope, session_id)

    async def delete_tenant(self, scope: TenantScope) -> None:
        self._writable()
        await self._index.delete_tenant(scope)

    async def set_acl(self, scope: TenantScope, session_id: UUID, acl: Sequence[str]) -> None:
        self.acl_changes += 1
        self._writable()
        if self._hold is not None:
            await self._hold.arrive()
        await self._index.set_acl(scope, session_id, acl)

    async def retrieve(self, scope: TenantScope, point_ids: Sequence[UUID]) -> list[StoredPoint]:
        self._there()
        return await self._index.retrieve(scope, point_ids)

    async def scroll(self, after: UUID | None = None, page_size: int = 1_000) -> AsyncIterator[list[StoredPoint]]:
        self._there()
        async for page in self._index.scroll(after, page_size):
            yield page

    async def scroll_ids(
        self, scope: TenantScope, page_size: int = 1_000, *, session_id: UUID | None = None
    ) -> AsyncIterator[list[UUID]]:
        self._there()
        async for page in self._index.scroll_ids(scope, page_size, session_id=session_id):
            yield page

    async def count(self, scope: TenantScope, session_id: UUID, generation: int) -> int:
        self._there()
        return await self._index.count(scope, session_id, generation)

    async def delete_generation(self, generation: int) -> None:
        self._writable()
        await self._index.delete_generation(generation)

    async def flush(self) -> None:
        """Nothing here is to survive this process, and a disk that others use takes its time."""
        self._writable()

    async def check(self) -> None:
        self._there()
        await self._index.check()

    async def close(self) -> None:
        await self._index.close()

    def _there(self) -> None:
        if self.gone:
            raise IndexUnavailable("The index does not answer.")

    def _writable(self) -> None:
        self._there()
        if self.refuses_writes:
            raise IndexUnavailable("The index takes no writes.")
