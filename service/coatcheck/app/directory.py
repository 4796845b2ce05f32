"""The store's directory of credentials, as authentication asks for it."""

from __future__ import annotations

import functools
from datetime import datetime
from uuid import UUID

from coatcheck.domain.scopes import NIL
from coatcheck.identity.doors import Door
from coatcheck.identity.operations import Role
from coatcheck.identity.ports import IssuerRecord, KeyRecord, SubjectRecord
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import credentials, delegations, directory, issuers, principals
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.delegations import DelegationRow
from coatcheck.store.directory import ApiKeyRow, Tenant
from coatcheck.store.principals import Principal


class StoreDirectory:
    """Looks a credential up under the tenant that it claims; the row security of that tenant is what answers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_key(self, tenant_id: UUID, key_id: UUID) -> KeyRecord | None:
        return await self._database.work(tenant_scope(tenant_id), lambda tx: credentials.find_key(tx, key_id))

    async def find_issuer(self, issuer: str) -> IssuerRecord | None:
        row = await self._database.directory(lambda tx: issuers.find(tx, issuer))
        return None if row is None else IssuerRecord(row.issuer, row.tenant_id, row.jwks_uri, row.audience)

    async def find_subject(self, tenant_id: UUID, issuer: str, subject: str) -> SubjectRecord | None:
        return await self._database.work(tenant_scope(tenant_id), lambda tx: _find_subject(tx, issuer, subject))

    async def find_delegation(self, tenant_id: UUID, delegation_id: UUID) -> KeyRecord | None:
        return await self._database.work(tenant_scope(tenant_id), lambda tx: _find_delegation(tx, delegation_id))


async def _find_subject(tx: WorkerTransaction, issuer: str, subject: str) -> SubjectRecord | None:
    principal = await principals.find_by_subject(tx, issuer, subject)
    tenant = await directory.find_tenant(tx)
    if principal is None or tenant is None:
        return None
    return SubjectRecord(
        principal_id=principal.principal_id,
        role=Role(principal.role),
        principal_active=principal.status == "active",
        tenant_active=tenant.status == "active",
        teams=principal.teams,
        permission_revision=tenant.permission_revision,
        own_revision=principal.permission_revision,
    )


async def _find_delegation(tx: WorkerTransaction, delegation_id: UUID) -> KeyRecord | None:
    chain = await delegations.chain(tx, delegation_id)
    top = chain[-1] if chain else None
    key = await directory.find_key(tx, (top.parent_key_id if top is not None else None) or NIL)
    has_issuer = await issuers.speaks_for(tx, (top.parent_issuer if top is not None else None) or "")
    tenant = await directory.find_tenant(tx)
    principal = await principals.find(tx, top.principal_id if top is not None else NIL)
    if top is None or tenant is None or principal is None or (key is None and not has_issuer):
        return None
    return _narrowed(tx.scope.tenant_id, chain, key, tenant, principal)


def _narrowed(
    tenant_id: UUID, chain: list[DelegationRow], key: ApiKeyRow | None, tenant: Tenant, principal: Principal
) -> KeyRecord:
    """What all of the chain allow: each was made narrower than the one above it, and here that is not taken for granted."""
    above: list[DelegationRow | ApiKeyRow] = [*chain, key] if key is not None else [*chain]
    ends = [row.expires_at for row in above if row.expires_at is not None]
    revocations: list[datetime] = [row.revoked_at for row in above if row.revoked_at is not None]
    kept = [row.sessions for row in above if row.sessions is not None]
    return KeyRecord(
        tenant_id=tenant_id,
        key_id=chain[0].delegation_id,
        principal_id=principal.principal_id,
        secret_hash=chain[0].secret_hash,
        key_version=chain[0].key_version,
        operations=frozenset.intersection(*(row.operations for row in above)),
        sessions=functools.reduce(frozenset.intersection, kept) if kept else None,
        expires_at=min(ends),
        revoked_at=min(revocations, default=None),
        role=Role(principal.role),
        principal_active=principal.status == "active" and {row.principal_id for row in above} == {principal.principal_id},
        tenant_active=tenant.status == "active",
        teams=principal.teams,
        permission_revision=tenant.permission_revision,
        own_revision=principal.permission_revision,
        doors=frozenset(Door) & frozenset.intersection(*(row.audience for row in chain)),
    )
