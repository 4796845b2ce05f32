"""Delegations: credentials that others were made with, each below a key, a token's issuer or another delegation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store import permission
from coatcheck.store.database import WorkerTransaction

_COLUMNS = """d.delegation_id, d.principal_id, d.parent_key_id, d.parent_delegation_id, d.parent_issuer, d.depth, d.name,
    d.secret_hash, d.key_version, d.operations, d.sessions, d.audience, d.created_at, d.expires_at, d.revoked_at"""

_INSERT = sa.text("""
    INSERT INTO delegations (tenant_id, delegation_id, principal_id, parent_key_id, parent_delegation_id, parent_issuer, depth,
                             name, secret_hash, key_version, operations, sessions, audience, created_at, expires_at)
    VALUES (:tenant, :delegation, :principal, :parent_key, :parent_delegation, :parent_issuer, :depth, :name, :secret_hash,
            :key_version, CAST(:operations AS text[]), CAST(:sessions AS uuid[]), CAST(:audience AS text[]), :created_at,
            :expires_at)
""")

_FORGET_OLD = sa.text("DELETE FROM delegations WHERE tenant_id = :tenant AND principal_id = :principal AND expires_at < :before")

_COUNT = sa.text("""
    SELECT count(*) FROM delegations
     WHERE tenant_id = :tenant AND principal_id = :principal AND revoked_at IS NULL AND expires_at > :now
""")

# No deeper than MAX_DEPTH, and each parent is older than its child, so that this ends.
_CHAIN = sa.text(f"""
    WITH RECURSIVE chain AS (
        SELECT {_COLUMNS} FROM delegations d WHERE d.tenant_id = :tenant AND d.delegation_id = :delegation
        UNION ALL
        SELECT {_COLUMNS} FROM delegations d JOIN chain c ON d.tenant_id = :tenant AND d.delegation_id = c.parent_delegation_id)
    SELECT * FROM chain ORDER BY depth DESC
""")

_PAGE = sa.text(f"""
    WITH RECURSIVE below AS (
        SELECT d.delegation_id FROM delegations d
         WHERE d.tenant_id = :tenant AND d.principal_id = :principal
           AND (CAST(:parent AS uuid) IS NULL OR d.parent_delegation_id = :parent)
        UNION
        SELECT d.delegation_id FROM delegations d JOIN below b
            ON d.tenant_id = :tenant AND d.parent_delegation_id = b.delegation_id)
    SELECT {_COLUMNS} FROM delegations d JOIN below b ON b.delegation_id = d.delegation_id
     WHERE d.tenant_id = :tenant
       AND (CAST(:sessions AS uuid[]) IS NULL OR d.sessions <@ CAST(:sessions AS uuid[]))
       AND (CAST(:after AS uuid) IS NULL OR d.delegation_id > :after)
     ORDER BY d.delegation_id LIMIT :limit
""")

_REVOKE = sa.text("""
    UPDATE delegations SET revoked_at = coalesce(revoked_at, :at) WHERE tenant_id = :tenant AND delegation_id = :delegation
""")

_REVOKE_OF_TOKENS = sa.text("""
    UPDATE delegations SET revoked_at = coalesce(revoked_at, :at)
     WHERE tenant_id = :tenant AND principal_id = :principal AND parent_issuer IS NOT NULL
""")


@dataclass(frozen=True, slots=True)
class DelegationRow:
    """One delegation as stored: never the secret, only its keyed hash. Exactly one of the three parents is set."""

    delegation_id: UUID
    principal_id: UUID
    parent_key_id: UUID | None
    parent_delegation_id: UUID | None
    parent_issuer: str | None
    depth: int
    name: str
    secret_hash: bytes
    key_version: int
    operations: frozenset[str]
    sessions: frozenset[UUID] | None
    audience: frozenset[str]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


async def insert(tx: WorkerTransaction, row: DelegationRow, *, forget_before: datetime) -> None:
    """Stores a new delegation; the principal's that ended before a time are forgotten.

    The permission revision stays: nothing that was remembered about anybody's rights is wrong for it.
    """
    await tx.connection.execute(_FORGET_OLD, {"tenant": tx.scope.tenant_id, "principal": row.principal_id, "before": forget_before})
    await tx.connection.execute(
        _INSERT,
        {
            "tenant": tx.scope.tenant_id,
            "delegation": row.delegation_id,
            "principal": row.principal_id,
            "parent_key": row.parent_key_id,
            "parent_delegation": row.parent_delegation_id,
            "parent_issuer": row.parent_issuer,
            "depth": row.depth,
            "name": row.name,
            "secret_hash": row.secret_hash,
            "key_version": row.key_version,
            "operations": sorted(row.operations),
            "sessions": None if row.sessions is None else sorted(row.sessions),
            "audience": sorted(row.audience),
            "created_at": row.created_at,
            "expires_at": row.expires_at,
        },
    )


async def count_living(tx: WorkerTransaction, principal_id: UUID, now: datetime) -> int:
    """How many of the principal's could still be used."""
    parameters = {"tenant": tx.scope.tenant_id, "principal": principal_id, "now": now}
    return int(await tx.connection.scalar(_COUNT, parameters) or 0)


async def chain(tx: WorkerTransaction, delegation_id: UUID) -> list[DelegationRow]:
    """The delegation, then what it was made with, up to the one that a key or a token made. Empty when there is none."""
    parameters = {"tenant": tx.scope.tenant_id, "delegation": delegation_id}
    return [_row(row) for row in await tx.connection.execute(_CHAIN, parameters)]


async def page(
    tx: WorkerTransaction,
    principal_id: UUID,
    parent_id: UUID | None,
    sessions: frozenset[UUID] | None,
    after: UUID | None,
    limit: int,
) -> list[DelegationRow]:
    """A principal's by id (and so by age) behind ``after``: all, or those below ``parent_id``; kept to these sessions, if any."""
    parameters = {
        "tenant": tx.scope.tenant_id,
        "principal": principal_id,
        "parent": parent_id,
        "sessions": None if sessions is None else sorted(sessions),
        "after": after,
        "limit": limit,
    }
    return [_row(row) for row in await tx.connection.execute(_PAGE, parameters)]


async def revoke(tx: WorkerTransaction, row: DelegationRow, at: datetime) -> None:
    """From this commit on neither it nor anything below it counts."""
    await tx.connection.execute(_REVOKE, {"tenant": tx.scope.tenant_id, "delegation": row.delegation_id, "at": at})
    await permission.of_principal(tx, row.principal_id)


async def revoke_of_tokens(tx: WorkerTransaction, principal_id: UUID, at: datetime) -> None:
    """The same of all that tokens of the principal have made: they are not that one's any more."""
    await tx.connection.execute(_REVOKE_OF_TOKENS, {"tenant": tx.scope.tenant_id, "principal": principal_id, "at": at})
    await permission.of_principal(tx, principal_id)


def _row(row: sa.Row[Any]) -> DelegationRow:
    return DelegationRow(
        delegation_id=row.delegation_id,
        principal_id=row.principal_id,
        parent_key_id=row.parent_key_id,
        parent_delegation_id=row.parent_delegation_id,
        parent_issuer=row.parent_issuer,
        depth=row.depth,
        name=row.name,
        secret_hash=row.secret_hash,
        key_version=row.key_version,
        operations=frozenset(row.operations),
        sessions=None if row.sessions is None else frozenset(row.sessions),
        audience=frozenset(row.audience),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
