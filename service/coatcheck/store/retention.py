"""For how long a tenant keeps its sessions, and which have had their time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store.database import WorkerTransaction

_FIND = sa.text("SELECT visibility, max_age_days FROM retention WHERE tenant_id = :tenant")

_CLEAR = sa.text("DELETE FROM retention WHERE tenant_id = :tenant")

_SET = sa.text("""
    INSERT INTO retention (tenant_id, visibility, max_age_days, changed_at) VALUES (:tenant, :visibility, :days, :at)
    ON CONFLICT (tenant_id, visibility) DO UPDATE SET max_age_days = excluded.max_age_days, changed_at = excluded.changed_at
""")

# A session's age counts from the last thing that was added to it; who is at work on it uses it.
_DUE = sa.text("""
    SELECT s.session_id FROM sessions s
      JOIN retention r ON r.tenant_id = s.tenant_id AND r.visibility = split_part(s.visibility, ':', 1)
     WHERE s.tenant_id = :tenant AND s.erased_at IS NULL
       AND (CAST(:session AS uuid) IS NULL OR s.session_id = :session)
       AND s.created_at < CAST(:now AS timestamptz) - make_interval(days => r.max_age_days)
       AND NOT EXISTS (
           SELECT FROM runs x
            WHERE x.tenant_id = s.tenant_id AND x.session_id = s.session_id
              AND (x.lease_until > :now
                   OR greatest(x.created_at, x.acknowledged_at)
                      >= CAST(:now AS timestamptz) - make_interval(days => r.max_age_days)))
     ORDER BY s.created_at, s.session_id LIMIT :limit
""")


async def find(tx: WorkerTransaction) -> dict[str, int]:
    """The most days by kind of visibility; a kind without an entry is kept until somebody erases it."""
    return {row.visibility: row.max_age_days for row in await tx.connection.execute(_FIND, {"tenant": tx.scope.tenant_id})}


async def change(tx: WorkerTransaction, days: Mapping[str, int], at: datetime) -> None:
    """Sets all of them."""
    await tx.connection.execute(_CLEAR, {"tenant": tx.scope.tenant_id})
    for visibility, most in sorted(days.items()):
        await tx.connection.execute(_SET, {"tenant": tx.scope.tenant_id, "visibility": visibility, "days": most, "at": at})


async def due(tx: WorkerTransaction, now: datetime, limit: int) -> list[UUID]:
    """Sessions that are older than their kind may become, and in nobody's use; the oldest first."""
    return await _due(tx, None, now, limit)


async def is_due(tx: WorkerTransaction, session_id: UUID, now: datetime) -> bool:
    """Whether that is still so of this one."""
    return bool(await _due(tx, session_id, now, 1))


async def _due(tx: WorkerTransaction, session_id: UUID | None, now: datetime, limit: int) -> list[UUID]:
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "now": now, "limit": limit}
    return list(await tx.connection.scalars(_DUE, parameters))
