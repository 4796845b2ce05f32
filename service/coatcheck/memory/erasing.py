"""The rest of an erasure, after its mark: journal, points, rows. Whoever does it twice does it once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from uuid import UUID

from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.domain.scopes import TenantScope
from coatcheck.memory import receipts
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.journal import JournalLine
from coatcheck.memory.projection import Projector
from coatcheck.memory.sweeping import sweep_later
from coatcheck.ops.faults import reach_async
from coatcheck.store import entries, outbox, projections, runs, segments, sessions
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.projections import ProjectionRow


class Eraser:
    """Takes what is marked out of the index and then out of the tables."""

    def __init__(self, parts: Collaborators, projector: Projector) -> None:
        self._parts = parts
        self._projector = projector
        self._under_way: set[tuple[UUID, UUID | None]] = set()

    @contextlib.contextmanager
    def alone_with(self, session_id: UUID, manifest_id: UUID | None) -> Iterator[None]:
        """While somebody marks an erasure and does the rest of it, the reconciler of this process need not do it a second time."""
        key = (session_id, manifest_id)
        self._under_way.add(key)
        try:
            yield
        finally:
            self._under_way.discard(key)

    def is_under_way(self, item: OutboxItem) -> bool:
        return (item.session_id, item.manifest_id) in self._under_way

    async def erase(self, scope: TenantScope, item: OutboxItem) -> None:
        """Raises IndexUnavailable, StoreUnavailable, OSError (the journal's disk); the outbox row stays then."""
        mac = await self._journal(scope, item)
        await reach_async("after-journal")
        if item.manifest_id is None:
            await self._session(scope, item, mac)
        else:
            await self._manifest(scope, item, mac)
        self._parts.metrics.erasures.inc()
        self._parts.state.erased = True

    async def _journal(self, scope: TenantScope, item: OutboxItem) -> str:
        now = self._parts.clock()
        if item.manifest_id is None:
            line = JournalLine(scope.tenant_id, "session", item.session_id, item.session_id, now)
        else:
            line = JournalLine(scope.tenant_id, "manifest", item.manifest_id, item.session_id, now)
        return await self._parts.journal.append(line)

    async def _session(self, scope: TenantScope, item: OutboxItem, mac: str) -> None:
        await self._parts.index.delete_session(scope, item.session_id)
        await self._parts.index.flush()
        await reach_async("after-points-erased")

        async def rows(tx: WorkerTransaction) -> None:
            await sessions.lock(tx, item.session_id)
            await sweep_later(self._parts, tx, item.session_id, None)
            await sessions.delete(tx, item.session_id)
            await receipts.complete(self._parts, tx, "session", item.session_id, mac)
            await outbox.complete_erasure(tx, item)
            await reach_async("inside-rows-erased")

        await self._parts.database.work(scope, rows)

    async def _manifest(self, scope: TenantScope, item: OutboxItem, mac: str) -> None:
        manifest_id = item.manifest_id
        assert manifest_id is not None

        async def doomed(tx: WorkerTransaction) -> tuple[list[ProjectionRow], bool]:
            shas = await entries.segments_only_of(tx, item.session_id, manifest_id)
            rows = await projections.all_of(tx, item.session_id, shas)
            return rows, {row.segment_sha256 for row in rows} != set(shas)

        removed, unrecorded = await self._parts.database.work(scope, doomed)
        await self._projector.remove(scope, item.session_id, removed)
        await self._parts.index.flush()
        await reach_async("after-points-erased")

        async def rows(tx: WorkerTransaction) -> None:
            await sessions.lock(tx, item.session_id)
            await sweep_later(self._parts, tx, item.session_id, manifest_id, unrecorded=unrecorded)
            orphaned = await projections.with_context_of(tx, item.session_id, manifest_id)
            await runs.delete(tx, manifest_id)
            await segments.delete_unreferenced(tx, item.session_id)
            for sha in sorted(await entries.held(tx, item.session_id, orphaned)):
                await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.UPSERT, item.session_id, segment_sha256=sha)
            await receipts.complete(self._parts, tx, "manifest", manifest_id, mac)
            await outbox.complete_erasure(tx, item)
            await reach_async("inside-rows-erased")

        await self._parts.database.work(scope, rows)
