"""Tenants and API keys: the directory that authentication asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store import permission
from coatcheck.store.database import DirectoryTransaction, WorkerTransaction

_TENANT = "tenant_id, name, status, key_fingerprint, created_at, permission_revision, erasure_tenant_id, erasure_id"
_KEY = """key_id, principal_id, name, secret_hash, key_version, operations, sessions, created_at, expires_at, revoked_at"""

_TENANTS = sa.text(f"SELECT {_TENANT} FROM tenants ORDER BY created_at, tenant_id")

_FIND_TENANT = sa.text(f"SELECT {_TENANT} FROM tenants WHERE tenant_id = :tenant")

_INSERT_TENANT = sa.text("""
    INSERT INTO tenants (tenant_id, name, status, key_fingerprint, created_at, permission_revision)
    VALUES (:tenant, :name, :status, :key_fingerprint, :created_at, :permission_revision)
    ON CONFLICT DO NOTHING
""")

_FIND_KEY = sa.text(f"SELECT {_KEY} FROM api_keys WHERE tenant_id = :tenant AND key_id = :key")

_PAGE_KEYS = sa.text(f"""
    SELECT {_KEY} FROM api_keys
     WHERE tenant_id = :tenant AND (CAST(:after AS uuid) IS NULL OR key_id > :after)
       AND (CAST(:principal AS uuid) IS NULL OR principal_id = :principal)
       AND (CAST(:kept_to AS uuid[]) IS NULL OR sessions <@ CAST(:kept_to AS uuid[]))
     ORDER BY key_id LIMIT :limit
""")

_INSERT_KEY = sa.text("""
    INSERT INTO api_keys (tenant_id, key_id, principal_id, name, secret_hash, key_version, operations, sessions, created_at,
                          expires_at, revoked_at)
    VALUES (:tenant, :key, :principal, :name, :secret_hash, :key_version, CAST(:operations AS text[]),
            CAST(:sessions AS uuid[]), :created_at, :expires_at, :revoked_at)
""")

_REVOKE_KEY = sa.text(f"""
    UPDATE api_keys SET revoked_at = coalesce(revoked_at, :at) WHERE tenant_id = :tenant AND key_id = :key
    RETURNING {_KEY}
""")


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant; ``permission_revision`` rises with every change to its principals, teams and keys."""

    tenant_id: UUID
    name: str
    status: str
    key_fingerprint: str
    created_at: datetime
    permission_revision: int = 0
    erasure_tenant_id: UUID | None = None
    """While it is being off-boarded: whose receipt that is, and which."""
    erasure_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ApiKeyRow:
    """One API key as stored: never the secret, only its keyed hash."""

    key_id: UUID
    principal_id: UUID
    name: str
    secret_hash: bytes
    key_version: int
    operations: frozenset[str]
    sessions: frozenset[UUID] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


async def tenants(tx: DirectoryTransaction) -> list[Tenant]:
    """Every tenant, oldest first: the walk of workers and scans."""
    return [_tenant(row) for row in await tx.connection.execute(_TENANTS)]


async def find_tenant(tx: WorkerTransaction) -> Tenant | None:
    """The tenant of the transaction's scope."""
    row = (await tx.connection.execute(_FIND_TENANT, {"tenant": tx.scope.tenant_id})).one_or_none()
    return None if row is None else _tenant(row)


async def insert_tenant(tx: DirectoryTransaction, tenant: Tenant) -> bool:
    """False when the id or the name is taken."""
    result = await tx.connection.execute(
        _INSERT_TENANT,
        {
            "tenant": tenant.tenant_id,
            "name": tenant.name,
            "status": tenant.status,
            "key_fingerprint": tenant.key_fingerprint,
            "created_at": tenant.created_at,
            "permission_revision": tenant.permission_revision,
        },
    )
    return result.rowcount == 1


async def find_key(tx: WorkerTransaction, key_id: UUID) -> ApiKeyRow | None:
    """The key, revoked or not."""
    row = (await tx.connection.execute(_FIND_KEY, {"tenant": tx.scope.tenant_id, "key": key_id})).one_or_none()
    return None if row is None else _key(row)


async def page_keys(
    tx: WorkerTransaction, after: UUID | None, limit: int, principal_id: UUID | None, kept_to: frozenset[UUID] | None
) -> list[ApiKeyRow]:
    """Keys by id (and so by age) behind ``after``: one principal's, or everybody's.

    With ``kept_to`` only those that are kept to some of these sessions.
    """
    sessions = None if kept_to is None else sorted(kept_to)
    parameters = {"tenant": tx.scope.tenant_id, "after": after, "limit": limit, "principal": principal_id, "kept_to": sessions}
    return [_key(row) for row in await tx.connection.execute(_PAGE_KEYS, parameters)]


async def insert_key(tx: WorkerTransaction, key: ApiKeyRow) -> None:
    """Stores a new key."""
    await tx.connection.execute(
        _INSERT_KEY,
        {
            "tenant": tx.scope.tenant_id,
            "key": key.key_id,
            "principal": key.principal_id,
            "name": key.name,
            "secret_hash": key.secret_hash,
            "key_version": key.key_version,
            "operations": sorted(key.operations),
            "sessions": None if key.sessions is None else sorted(key.sessions),
            "created_at": key.created_at,
            "expires_at": key.expires_at,
            "revoked_at": key.revoked_at,
        },
    )
    await permission.of_principal(tx, key.principal_id)


async def revoke_key(tx: WorkerTransaction, key_id: UUID, at: datetime) -> ApiKeyRow | None:
    """The key, revoked at its first revocation's time; None when there is none."""
    parameters = {"tenant": tx.scope.tenant_id, "key": key_id, "at": at}
    row = (await tx.connection.execute(_REVOKE_KEY, parameters)).one_or_none()
    if row is None:
        return None
    await permission.of_principal(tx, row.principal_id)
    return _key(row)


def _tenant(row: sa.Row[Any]) -> Tenant:
    return Tenant(**row._mapping)


def _key(row: sa.Row[Any]) -> ApiKeyRow:
    return ApiKeyRow(
        key_id=row.key_id,
        principal_id=row.principal_id,
        name=row.name,
        secret_hash=row.secret_hash,
        key_version=row.key_version,
        operations=frozenset(row.operations),
        sessions=None if row.sessions is None else frozenset(row.sessions),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
