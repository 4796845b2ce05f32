"""After an unclean stop: an index that may have lost its last writes is held against the rows, and written again where it is short.

A kill leaves the index whole; a power cut may take back what was written since the last flush: points that are missing, points
of an older text or of readers that are none any more, points that had been taken out.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import structlog

from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.passages import point_id
from coatcheck.domain.scopes import TenantScope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.reconcile import Reconciler
from coatcheck.memory.startup import tenants
from coatcheck.ops.faults import reach_async
from coatcheck.store import outbox, projections, runs, sessions
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.projections import ProjectionRow

log = structlog.get_logger(__name__)
FLUSH_MARGIN = timedelta(seconds=30)
"""Clocks of the database and of this process may differ by so much."""
BATCH = 1_000


async def recover_index(parts: Collaborators, reconciler: Reconciler, flushed_at: datetime | None) -> int:
    """Sessions projected since the last flush whose points are not as recorded are projected again. Returns how many.

    What else is outstanding waits for the reconciler: a start is not to wait for it.
    """
    since = flushed_at - FLUSH_MARGIN if flushed_at is not None else None
    generation = parts.generation.number
    total = 0
    for scope in await tenants(parts.database):
        recorded = await parts.database.work(scope, lambda tx: projections.sessions_since(tx, generation, since))
        again = 0
        for session_id, passages in recorded.items():
            there = await parts.index.count(scope, session_id, generation)
            if there != passages or not await _is_as_recorded(parts, scope, session_id):
                await _project_again(parts, scope, session_id, too_many=there > passages)
                await reach_async("inside-recovery")
                again += 1
        if again:
            total += again
            await reconciler.drain_tenant(scope.tenant_id)
    if total:
        log.warning("index.recovered", sessions=total)
    return total


async def _is_as_recorded(parts: Collaborators, scope: TenantScope, session_id: UUID) -> bool:
    """Whether every point that the rows tell of is there, made from the text and context that they tell, for the same readers."""
    generation = parts.generation.number

    async def work(tx: WorkerTransaction) -> tuple[list[ProjectionRow], set[str]]:
        session = await sessions.find_any(tx, session_id)
        return await projections.of_session(tx, session_id, generation), set(session.acl) if session is not None else set()

    rows, acl = await parts.database.work(scope, work)
    versions = {
        point_id(scope.tenant_id, session_id, row.segment_sha256, number, generation): row.content_version
        for row in rows
        for number in range(row.passages)
    }
    ids = list(versions)
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        points = await parts.index.retrieve(scope, batch)
        if len(points) != len(batch):
            return False
        if any(point.content_version != versions[point.point_id] or set(point.acl) != acl for point in points):
            return False
    return True


async def _project_again(parts: Collaborators, scope: TenantScope, session_id: UUID, *, too_many: bool) -> None:
    """``too_many``: points that were taken out are back, and nobody knows which."""
    if too_many:
        await parts.index.delete_session(scope, session_id)

    async def work(tx: WorkerTransaction) -> None:
        await sessions.lock(tx, session_id)
        await projections.delete_session(tx, session_id)
        for identity in await runs.identities(tx, session_id):
            await outbox.enqueue(tx, parts.new_id(), OutboxKind.UPSERT, session_id, manifest_id=identity.manifest_id)

    await parts.database.work(scope, work)
