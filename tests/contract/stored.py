"""How many rows a tenant has: what a refused request must not change."""

from __future__ import annotations

from uuid import UUID

import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store.database import WorkerTransaction

CONTENT_TABLES = ("sessions", "runs", "segments", "reductions", "blobs", "entries", "projections", "outbox", "tombstones")


async def rows(app: App, tenant_id: UUID) -> dict[str, int]:
    """Rows by table, the tenant's alone."""

    async def work(tx: WorkerTransaction) -> dict[str, int]:
        counts = {}
        for table in CONTENT_TABLES:
            found = await tx.connection.scalar(
                sa.text(f"SELECT count(*) FROM {table} WHERE tenant_id = :tenant"), {"tenant": tenant_id}
            )
            counts[table] = int(found)
        return counts

    return await app.parts.database.work(tenant_scope(tenant_id), work)
