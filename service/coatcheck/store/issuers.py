"""Issuers: which token issuer speaks for which tenant, where its keys are, and for whom its tokens must be. No row security."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store.database import DirectoryTransaction, WorkerTransaction

_COLUMNS = "issuer, tenant_id, jwks_uri, audience, created_at"

_FIND = sa.text(f"SELECT {_COLUMNS} FROM issuers WHERE issuer = :issuer")

_SPEAKS_FOR = sa.text("SELECT EXISTS (SELECT FROM issuers WHERE issuer = :issuer AND tenant_id = :tenant)")

_PAGE = sa.text(f"""
    SELECT {_COLUMNS} FROM issuers WHERE CAST(:after AS text) IS NULL OR issuer > :after ORDER BY issuer LIMIT :limit
""")

_INSERT = sa.text("""
    INSERT INTO issuers (issuer, tenant_id, jwks_uri, audience, created_at)
    VALUES (:issuer, :tenant, :jwks_uri, :audience, :created_at) ON CONFLICT DO NOTHING
""")

_DELETE = sa.text("DELETE FROM issuers WHERE issuer = :issuer AND tenant_id = :tenant")


@dataclass(frozen=True, slots=True)
class IssuerRow:
    """One issuer; a token of its is for ``audience`` or is refused."""

    issuer: str
    tenant_id: UUID
    jwks_uri: str
    audience: str
    created_at: datetime


async def find(tx: DirectoryTransaction, issuer: str) -> IssuerRow | None:
    row = (await tx.connection.execute(_FIND, {"issuer": issuer})).one_or_none()
    return None if row is None else _row(row)


async def speaks_for(tx: WorkerTransaction, issuer: str) -> bool:
    """Whether the issuer speaks for the transaction's tenant, now."""
    return bool(await tx.connection.scalar(_SPEAKS_FOR, {"issuer": issuer, "tenant": tx.scope.tenant_id}))


async def page(tx: DirectoryTransaction, after: str | None, limit: int) -> list[IssuerRow]:
    """All issuers of the installation by name behind ``after``."""
    return [_row(row) for row in await tx.connection.execute(_PAGE, {"after": after, "limit": limit})]


async def insert(tx: WorkerTransaction, row: IssuerRow) -> bool:
    """For the transaction's tenant. False when the issuer speaks for a tenant already: there is one tenant to an issuer."""
    result = await tx.connection.execute(
        _INSERT,
        {
            "issuer": row.issuer,
            "tenant": tx.scope.tenant_id,
            "jwks_uri": row.jwks_uri,
            "audience": row.audience,
            "created_at": row.created_at,
        },
    )
    return result.rowcount == 1


async def delete(tx: WorkerTransaction, issuer: str) -> bool:
    """False when it does not speak for the transaction's tenant."""
    result = await tx.connection.execute(_DELETE, {"issuer": issuer, "tenant": tx.scope.tenant_id})
    return result.rowcount == 1


def _row(row: sa.Row[Any]) -> IssuerRow:
    return IssuerRow(row.issuer, row.tenant_id, row.jwks_uri, row.audience, row.created_at)
