"""A tenant's own limits, and the ledger of what it has stored."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from coatcheck.domain.limits import StoredUsage, TenantLimits
from coatcheck.store.database import AnyTransaction, AnyWriteTransaction, WorkerTransaction

FOLD_FROM = 200
"""Rows of a tenant's ledger from which on they are folded into one."""

_NAMES = "requests_per_minute, bytes_per_minute, embedding_seconds_per_minute, max_segments, max_bytes"

_FIND = sa.text(f"SELECT {_NAMES} FROM tenant_limits WHERE tenant_id = :tenant")

_SET = sa.text(f"""
    INSERT INTO tenant_limits (tenant_id, {_NAMES}, changed_at)
    VALUES (:tenant, :requests_per_minute, :bytes_per_minute, :embedding_seconds_per_minute, :max_segments, :max_bytes, :at)
    ON CONFLICT (tenant_id) DO UPDATE
       SET requests_per_minute = excluded.requests_per_minute, bytes_per_minute = excluded.bytes_per_minute,
           embedding_seconds_per_minute = excluded.embedding_seconds_per_minute, max_segments = excluded.max_segments,
           max_bytes = excluded.max_bytes, changed_at = excluded.changed_at
""")

_STORED = sa.text("""
    SELECT CAST(coalesce(sum(segments), 0) AS bigint) AS segments, CAST(coalesce(sum(bytes), 0) AS bigint) AS bytes
      FROM stored_usage WHERE tenant_id = :tenant
""")

# The tenant's alone: of two that add at once, the later one sees what the earlier one stored.
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('stored/' || CAST(:tenant AS text), 0))")

_FOLD = sa.text("""
    WITH gone AS (
        DELETE FROM stored_usage
         WHERE tenant_id = :tenant AND (SELECT count(*) FROM stored_usage WHERE tenant_id = :tenant) >= :fold_from
        RETURNING segments, bytes
    )
    INSERT INTO stored_usage (tenant_id, segments, bytes)
    SELECT :tenant, sum(segments), sum(bytes) FROM gone HAVING count(*) > 0
""")


async def find(tx: AnyTransaction) -> TenantLimits:
    """What was set for the tenant itself; where nothing was, the installation's defaults count."""
    row = (await tx.connection.execute(_FIND, {"tenant": tx.scope.tenant_id})).one_or_none()
    return TenantLimits() if row is None else TenantLimits(*row)


async def change(tx: WorkerTransaction, limits: TenantLimits, at: datetime) -> None:
    """Sets all of the tenant's own limits; None gives one back to the default."""
    values = {name: getattr(limits, name) for name in TenantLimits.__slots__}
    await tx.connection.execute(_SET, {"tenant": tx.scope.tenant_id, "at": at, **values})


async def stored(tx: AnyTransaction) -> StoredUsage:
    """What the tenant has stored, what this transaction did included."""
    row = (await tx.connection.execute(_STORED, {"tenant": tx.scope.tenant_id})).one()
    return StoredUsage(row.segments, row.bytes)


async def lock_stored(tx: AnyWriteTransaction) -> None:
    """Until this transaction ends, nobody else who asked for the same may add to what the tenant has stored."""
    await tx.connection.execute(_LOCK, {"tenant": tx.scope.tenant_id})


async def fold(tx: WorkerTransaction) -> bool:
    """Makes many rows of the ledger one. Whoever reads meanwhile sees the same sum. True when there was something to fold."""
    result = await tx.connection.execute(_FOLD, {"tenant": tx.scope.tenant_id, "fold_from": FOLD_FROM})
    return result.rowcount == 1
