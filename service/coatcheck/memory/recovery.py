"""After an unclean stop: an index that may have lost its last writes is held against the rows, and written again where it is short.

A kill leaves the index whole; a power cut may take back what was written since the last flush: points that are missing, points
of an older text or of readers that are none any more, points that had been taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    """Of sessions projected since the last flush: what is not as recorded is projected again, what no row tells of is taken out.

    Returns in how many. What else is outstanding waits for the reconciler: a start is not to wait for it.
    """
    since = flushed_at - FLUSH_MARGIN if flushed_at is not None else None
    total = 0
    for scope in await tenants(parts.database):
        recorded = await parts.database.work(scope, lambda tx: projections.sessions_since(tx, parts.generation.number, since))
        is_owed = False
        for session_id in recorded:
            seen = await _seen(parts, scope, session_id)
            # First: without its rows the session is not looked at again, should this process die in between.
            await parts.index.delete_points(scope, seen.unknown)
            if seen.wrong:
                await _project_again(parts, scope, session_id, seen.wrong)
                await reach_async("inside-recovery")
                is_owed = True
            total += bool(seen.wrong or seen.unknown)
        if is_owed:
            await reconciler.drain_tenant(scope.tenant_id)
    if total:
        log.warning("index.recovered", sessions=total)
    return total


@dataclass(frozen=True, slots=True)
class _Seen:
    """What differs between the rows of a session and its points."""

    wrong: list[str]
    """Segments of which a point is missing, or made from another text or context than the row says, or for other readers."""
    unknown: list[UUID]
    """Points that no row tells of: what had been taken out and is back, or had just been written when the process died."""


async def _seen(parts: Collaborators, scope: TenantScope, session_id: UUID) -> _Seen:
    generation = parts.generation.number

    async def work(tx: WorkerTransaction) -> tuple[list[ProjectionRow], set[str]]:
        session = await sessions.find_any(tx, session_id)
        return await projections.of_session(tx, session_id), set(session.acl) if session is not None else set()

    rows, acl = await parts.database.work(scope, work)
    told = {
        point_id(scope.tenant_id, session_id, row.segment_sha256, number, row.generation): row
        for row in rows
        for number in range(row.passages)
    }
    ids = [one for one, row in told.items() if row.generation == generation]
    whole: set[UUID] = set()
    for start in range(0, len(ids), BATCH):
        for point in await parts.index.retrieve(scope, ids[start : start + BATCH]):
            says = (point.tenant_id, point.session_id, point.content_version, set(point.acl))
            if says == (scope.tenant_id, session_id, told[point.point_id].content_version, acl):
                whole.add(point.point_id)
    wrong = {told[one].segment_sha256 for one in ids if one not in whole}
    unknown: list[UUID] = []
    if await parts.index.count(scope, session_id, generation) > len(whole):
        unknown = [one async for page in parts.index.scroll_ids(scope, session_id=session_id) for one in page if one not in told]
    return _Seen(sorted(wrong), unknown)


async def _project_again(parts: Collaborators, scope: TenantScope, session_id: UUID, sha256s: Sequence[str]) -> None:
    """The session's runs are gone through once more; what is current is left as it is."""

    async def work(tx: WorkerTransaction) -> None:
        await sessions.lock(tx, session_id)
        await projections.delete(tx, session_id, sha256s)
        for identity in await runs.identities(tx, session_id):
            await outbox.enqueue(tx, parts.new_id(), OutboxKind.UPSERT, session_id, manifest_id=identity.manifest_id)

    await parts.database.work(scope, work)
