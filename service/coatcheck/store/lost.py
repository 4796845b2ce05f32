"""What windows name beside their segments, and is not there or not as it was: blobs and handoffs. Page by page.

The database computes these hashes: blobs are large, and their bytes stay where they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.scopes import NIL, TenantScope
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.integrity import Position

_HANDOFFS = sa.text("""
    SELECT r.manifest_id, r.session_id, r.handoff_sha256, encode(sha256(r.handoff_text), 'hex') = r.handoff_sha256 AS whole,
           r.erased_at IS NULL AND EXISTS (
               SELECT FROM sessions s WHERE s.tenant_id = :tenant AND s.session_id = r.session_id AND s.erased_at IS NULL
           ) AS retained
      FROM (SELECT * FROM runs WHERE tenant_id = :tenant AND manifest_id > CAST(:after AS uuid)
             ORDER BY manifest_id LIMIT :limit) r
     ORDER BY r.manifest_id
""")

# Walked by what entries name, and each looked up by its key (a subquery with LIMIT cannot be joined): so a blob without a row is
# met as well. Whether a window that stands holds it is asked only where something is wrong.
_BLOBS = sa.text("""
    SELECT named.session_id, named.sha256, b.whole IS NULL AS missing, coalesce(b.whole, false) AS whole,
           CASE WHEN b.whole THEN true ELSE
               EXISTS (SELECT FROM sessions s
                        WHERE s.tenant_id = :tenant AND s.session_id = named.session_id AND s.erased_at IS NULL)
               AND coalesce((
                   SELECT true FROM entries e
                    WHERE e.tenant_id = :tenant AND e.session_id = named.session_id AND e.blob_sha256 = named.sha256
                      AND e.manifest_id <> ALL (ARRAY(
                          SELECT manifest_id FROM runs WHERE tenant_id = :tenant AND erased_at IS NOT NULL))
                    LIMIT 1), false)
           END AS retained
      FROM (SELECT DISTINCT session_id, blob_sha256 AS sha256 FROM entries
             WHERE tenant_id = :tenant AND blob_sha256 IS NOT NULL
               AND (session_id, blob_sha256) > (CAST(:after_session AS uuid), CAST(:after_sha AS text))
             ORDER BY session_id, blob_sha256 LIMIT :limit) named
      LEFT JOIN LATERAL (
           SELECT encode(sha256(raw), 'hex') = sha256 AS whole FROM blobs
            WHERE tenant_id = :tenant AND session_id = named.session_id AND sha256 = named.sha256 LIMIT 1
           ) b ON true
     ORDER BY named.session_id, named.sha256
""")


@dataclass(frozen=True, slots=True)
class Lost:
    """A blob that is gone, or a blob or a handoff whose bytes are not what its hash says."""

    session_id: UUID
    sha256: str
    is_missing: bool


async def stream_lost(database: Database, scope: TenantScope, batch: int) -> AsyncIterator[Lost]:
    """What of blobs and handoffs is not there or not as it was. Raises StoreUnavailable."""
    manifest_id: UUID | None = NIL
    while manifest_id is not None:
        lost, manifest_id = await database.work(scope, partial(changed_handoffs, after=manifest_id, limit=batch))
        for one in lost:
            yield one
    after: Position | None = (NIL, "")
    while after is not None:
        lost, after = await database.work(scope, partial(lost_blobs, after=after, limit=batch))
        for one in lost:
            yield one


async def changed_handoffs(tx: WorkerTransaction, *, after: UUID, limit: int) -> tuple[list[Lost], UUID | None]:
    """Handoffs that are not their hash, of the next ``limit`` runs; None behind the last."""
    parameters = {"tenant": tx.scope.tenant_id, "after": after, "limit": limit}
    found = (await tx.connection.execute(_HANDOFFS, parameters)).all()
    lost = [Lost(row.session_id, row.handoff_sha256, is_missing=False) for row in found if row.retained and not row.whole]
    return lost, found[-1].manifest_id if len(found) == limit else None


async def lost_blobs(tx: WorkerTransaction, *, after: Position, limit: int) -> tuple[list[Lost], Position | None]:
    """Blobs without a row and blobs that are not their hash, among the next ``limit`` that windows name."""
    session_id, sha256 = after
    parameters = {"tenant": tx.scope.tenant_id, "after_session": session_id, "after_sha": sha256, "limit": limit}
    found = (await tx.connection.execute(_BLOBS, parameters)).all()
    lost = [Lost(row.session_id, row.sha256, row.missing) for row in found if row.retained and not row.whole]
    return lost, (found[-1].session_id, found[-1].sha256) if len(found) == limit else None
