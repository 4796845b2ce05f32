"""What windows name that is not there or not as it was, and that a walk over the segments cannot show. Page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.scopes import NIL, TenantScope
from coatcheck.store.database import Database, WorkerTransaction

Position = tuple[UUID, str]
"""Session and hash of the last blob of a page."""

# Foreign keys keep entries from losing their texts; a broken disk or a careless hand does not ask them.
# Each text is looked up by its key (a subquery with LIMIT cannot be joined): a join reads the whole session for each of its runs.
_WINDOWS = sa.text("""
    SELECT r.manifest_id, r.session_id, r.handoff_sha256, encode(sha256(r.handoff_text), 'hex') = r.handoff_sha256 AS whole,
           ARRAY(SELECT DISTINCT e.segment_sha256 FROM entries e
                  WHERE e.tenant_id = :tenant AND e.manifest_id = r.manifest_id AND e.segment_sha256 IS NOT NULL
                    AND coalesce((SELECT false FROM segments g
                                   WHERE g.tenant_id = :tenant AND g.session_id = r.session_id AND g.sha256 = e.segment_sha256
                                   LIMIT 1), true)) AS lost_segments,
           ARRAY(SELECT DISTINCT e.blob_sha256 FROM entries e
                  WHERE e.tenant_id = :tenant AND e.manifest_id = r.manifest_id AND e.blob_sha256 IS NOT NULL
                    AND coalesce((SELECT false FROM blobs b
                                   WHERE b.tenant_id = :tenant AND b.session_id = r.session_id AND b.sha256 = e.blob_sha256
                                   LIMIT 1), true)) AS lost_blobs,
           r.erased_at IS NULL AND EXISTS (
               SELECT FROM sessions s WHERE s.tenant_id = :tenant AND s.session_id = r.session_id AND s.erased_at IS NULL
           ) AS retained
      FROM (SELECT * FROM runs WHERE tenant_id = :tenant AND manifest_id > CAST(:after AS uuid)
             ORDER BY manifest_id LIMIT :limit) r
     ORDER BY r.manifest_id
""")

_BLOBS = sa.text("""
    SELECT session_id, sha256, encode(sha256(raw), 'hex') = sha256 AS whole
      FROM (SELECT * FROM blobs
             WHERE tenant_id = :tenant AND (session_id, sha256) > (CAST(:after_session AS uuid), CAST(:after_sha AS text))
             ORDER BY session_id, sha256 LIMIT :limit) b
     ORDER BY session_id, sha256
""")


@dataclass(frozen=True, slots=True)
class Lost:
    """A text that is gone, or whose bytes are not what its hash says: a segment without a row, a blob, a handoff."""

    session_id: UUID
    sha256: str
    is_missing: bool


async def stream_lost(database: Database, scope: TenantScope, batch: int) -> AsyncIterator[Lost]:
    """What windows name that is not there or not as it was, and what the segments' stream cannot show. Raises StoreUnavailable."""
    manifest_id: UUID | None = NIL
    while manifest_id is not None:
        lost, manifest_id = await database.work(scope, partial(lost_of_windows, after=manifest_id, limit=batch))
        for one in lost:
            yield one
    after: Position | None = (NIL, "")
    while after is not None:
        lost, after = await database.work(scope, partial(changed_blobs, after=after, limit=batch))
        for one in lost:
            yield one


async def lost_of_windows(tx: WorkerTransaction, *, after: UUID, limit: int) -> tuple[list[Lost], UUID | None]:
    """Texts without a row and handoffs that are not their hash, of the next ``limit`` runs; None behind the last."""
    parameters = {"tenant": tx.scope.tenant_id, "after": after, "limit": limit}
    found = (await tx.connection.execute(_WINDOWS, parameters)).all()
    lost: list[Lost] = []
    for row in found:
        if row.retained:
            lost += [Lost(row.session_id, sha, is_missing=True) for sha in (*row.lost_segments, *row.lost_blobs)]
            if not row.whole:
                lost.append(Lost(row.session_id, row.handoff_sha256, is_missing=False))
    return lost, found[-1].manifest_id if len(found) == limit else None


async def changed_blobs(tx: WorkerTransaction, *, after: Position, limit: int) -> tuple[list[Lost], Position | None]:
    """Blobs that are not their hash, among the next ``limit``. The database computes it: their bytes stay where they are."""
    session_id, sha256 = after
    parameters = {"tenant": tx.scope.tenant_id, "after_session": session_id, "after_sha": sha256, "limit": limit}
    found = (await tx.connection.execute(_BLOBS, parameters)).all()
    lost = [Lost(row.session_id, row.sha256, is_missing=False) for row in found if not row.whole]
    return lost, (found[-1].session_id, found[-1].sha256) if len(found) == limit else None
