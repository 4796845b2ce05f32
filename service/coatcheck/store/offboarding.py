"""The end of a tenant: begun with its status, then all of its rows, whatever table they are in, then the tenant."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store import tables
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.tables import metadata

ERASING = "erasing"
"""The status of a tenant whose end has begun: its credentials count no more, and a start goes on with it."""

_BEGIN = sa.text("""
    UPDATE tenants SET status = 'erasing', erasure_tenant_id = :asked_by, erasure_id = :erasure
     WHERE tenant_id = :gone AND status <> 'erasing'
""")

_WORK = sa.text("""
    SELECT EXISTS (SELECT FROM runs WHERE tenant_id = :tenant AND lease_until > :now)
        OR EXISTS (SELECT FROM outbox WHERE tenant_id = :tenant AND lease_until > :now)
""")

_COUNTS = sa.text("""
    SELECT (SELECT count(*) FROM sessions WHERE tenant_id = :tenant) AS sessions,
           (SELECT count(*) FROM runs WHERE tenant_id = :tenant) AS manifests,
           (SELECT count(*) FROM entries WHERE tenant_id = :tenant) AS entries,
           (SELECT count(*) FROM segments WHERE tenant_id = :tenant) AS segments,
           (SELECT count(*) FROM reductions WHERE tenant_id = :tenant) AS reductions,
           (SELECT count(*) FROM blobs WHERE tenant_id = :tenant) AS blobs,
           (SELECT coalesce(sum(passages), 0) FROM projections WHERE tenant_id = :tenant) AS points,
           (SELECT count(*) FROM cache_entries WHERE tenant_id = :tenant) AS cache_entries,
           (SELECT count(*) FROM api_keys WHERE tenant_id = :tenant) AS keys,
           (SELECT count(*) FROM principals WHERE tenant_id = :tenant) AS principals
""")

_SESSIONS = sa.text("SELECT session_id FROM sessions WHERE tenant_id = :tenant ORDER BY session_id LIMIT :limit")

_LOCK_TENANT = sa.text("SELECT FROM tenants WHERE tenant_id = :tenant AND status = 'erasing' FOR UPDATE")

_DELETE_TENANT = sa.text("DELETE FROM tenants WHERE tenant_id = :tenant AND status = 'erasing'")


async def begin(tx: WorkerTransaction, gone: UUID, erasure_id: UUID | None) -> bool:
    """Ends a tenant's credentials with this commit; remembers whose receipt is to be completed. False when that was done."""
    parameters = {"gone": gone, "asked_by": tx.scope.tenant_id if erasure_id is not None else None, "erasure": erasure_id}
    return (await tx.connection.execute(_BEGIN, parameters)).rowcount == 1


async def is_worked_on(tx: WorkerTransaction, now: datetime) -> bool:
    """Whether somebody holds a lease on work of the tenant, and so may yet write points of it."""
    return bool(await tx.connection.scalar(_WORK, {"tenant": tx.scope.tenant_id, "now": now}))


async def counts(tx: WorkerTransaction) -> dict[str, int]:
    """What the tenant has."""
    row = (await tx.connection.execute(_COUNTS, {"tenant": tx.scope.tenant_id})).one()
    return {name: int(value) for name, value in row._mapping.items()}


async def some_sessions(tx: WorkerTransaction, limit: int) -> list[UUID]:
    return list(await tx.connection.scalars(_SESSIONS, {"tenant": tx.scope.tenant_id, "limit": limit}))


async def delete_rows(tx: WorkerTransaction) -> None:
    """Every row of the tenant in every table but its own. A table that comes later is among them."""
    ordered = [table for table in reversed(metadata.sorted_tables) if "tenant_id" in table.columns]
    # The ledger last: what goes is counted in it.
    for table in [t for t in ordered if t not in (tables.tenants, tables.stored_usage)] + [tables.stored_usage]:
        await tx.connection.execute(table.delete().where(table.columns.tenant_id == tx.scope.tenant_id))


async def delete_tenant(tx: WorkerTransaction) -> None:
    """The tenant itself, and with it whatever came in since; its name is free.

    What is counted goes by a statement of its own: a foreign key's cascade deletes as the tables' owner, whom row security lets
    write nothing to the ledger.
    """
    if (await tx.connection.execute(_LOCK_TENANT, {"tenant": tx.scope.tenant_id})).one_or_none() is not None:
        await delete_rows(tx)
        await tx.connection.execute(_DELETE_TENANT, {"tenant": tx.scope.tenant_id})
