"""The store's directory of credentials, as authentication asks for it."""

from __future__ import annotations

from uuid import UUID

from coatcheck.identity.ports import IssuerRecord, KeyRecord, RightsRecord
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import credentials, issuers
from coatcheck.store.database import Database


class StoreDirectory:
    """Looks a credential up under the tenant that it claims; the row security of that tenant is what answers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_key(self, tenant_id: UUID, key_id: UUID) -> KeyRecord | None:
        return await self._database.work(tenant_scope(tenant_id), lambda tx: credentials.find_key(tx, key_id))

    async def find_issuer(self, issuer: str) -> IssuerRecord | None:
        row = await self._database.directory(lambda tx: issuers.find(tx, issuer))
        return None if row is None else IssuerRecord(row.issuer, row.tenant_id, row.jwks_uri, row.audience)

    async def find_subject(self, tenant_id: UUID, issuer: str, subject: str) -> RightsRecord | None:
        return await self._database.work(tenant_scope(tenant_id), lambda tx: credentials.find_subject(tx, issuer, subject))

    async def find_delegation(self, tenant_id: UUID, delegation_id: UUID) -> KeyRecord | None:
        return await self._database.work(tenant_scope(tenant_id), lambda tx: credentials.find_delegation(tx, delegation_id))
