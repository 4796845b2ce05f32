"""The store's directory of credentials, as authentication asks for it."""

from __future__ import annotations

from uuid import UUID

from coatcheck.domain.scopes import NIL
from coatcheck.identity.operations import Role
from coatcheck.identity.ports import KeyRecord
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import directory, principals
from coatcheck.store.database import Database, WorkerTransaction


class StoreDirectory:
    """Looks a key up under the tenant that it claims; the row security of that tenant is what answers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_key(self, tenant_id: UUID, key_id: UUID) -> KeyRecord | None:
        return await self._database.work(tenant_scope(tenant_id), lambda tx: _find(tx, key_id))


async def _find(tx: WorkerTransaction, key_id: UUID) -> KeyRecord | None:
    row = await directory.find_key(tx, key_id)
    tenant = await directory.find_tenant(tx)
    # Asked for as well where there is no key: an unknown key must not be told by a question less.
    principal = await principals.find(tx, row.principal_id if row is not None else NIL)
    if row is None or tenant is None or principal is None:
        return None
    return KeyRecord(
        tenant_id=tx.scope.tenant_id,
        key_id=row.key_id,
        principal_id=row.principal_id,
        secret_hash=row.secret_hash,
        key_version=row.key_version,
        operations=row.operations,
        sessions=row.sessions,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        role=Role(principal.role),
        principal_active=principal.status == "active",
        tenant_active=tenant.status == "active",
        teams=principal.teams,
        permission_revision=tenant.permission_revision,
    )
