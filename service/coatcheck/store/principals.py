"""Principals: who acts in a tenant, with which role, and which issuer's subject they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.identifiers import utc_now
from coatcheck.store import permission
from coatcheck.store.database import AnyTransaction, WorkerTransaction

_COLUMNS = """
    SELECT p.principal_id, p.name, p.role, p.status, p.issuer, p.subject, p.created_at, p.permission_revision,
           ARRAY(SELECT m.team_id FROM memberships m
                  WHERE m.tenant_id = p.tenant_id AND m.principal_id = p.principal_id ORDER BY 1) AS teams
      FROM principals p WHERE p.tenant_id = :tenant
"""

_FIND = sa.text(f"{_COLUMNS} AND p.principal_id = :principal")

_FIND_BY_SUBJECT = sa.text(f"{_COLUMNS} AND p.issuer = :issuer AND p.subject = :subject")

_PAGE = sa.text(f"{_COLUMNS} AND (CAST(:after AS uuid) IS NULL OR p.principal_id > :after) ORDER BY p.principal_id LIMIT :limit")

_FIRST_OPERATOR = sa.text("""
    SELECT principal_id FROM principals WHERE tenant_id = :tenant AND role = 'operator' AND status = 'active'
     ORDER BY created_at, principal_id LIMIT 1
""")

_EXISTING = sa.text("SELECT principal_id FROM principals WHERE tenant_id = :tenant AND principal_id = ANY (:principals)")

_INSERT = sa.text("""
    INSERT INTO principals (tenant_id, principal_id, name, role, issuer, subject, created_at)
    VALUES (:tenant, :principal, :name, :role, :issuer, :subject, :created_at) ON CONFLICT DO NOTHING
""")

_LOCK = sa.text("SELECT FROM principals WHERE tenant_id = :tenant AND principal_id = :principal FOR UPDATE")

_UPDATE = sa.text("""
    UPDATE principals SET name = :name, role = :role, status = :status, issuer = :issuer, subject = :subject
     WHERE tenant_id = :tenant AND principal_id = :principal
       AND NOT EXISTS (SELECT FROM principals o
                        WHERE o.tenant_id = :tenant AND o.issuer = :issuer AND o.subject = :subject
                          AND o.principal_id <> :principal)
""")


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody or something that acts; ``status`` is ``active`` or ``inactive``, ``role`` ``member`` or ``operator``."""

    principal_id: UUID
    name: str
    role: str
    status: str
    issuer: str | None
    subject: str | None
    created_at: datetime
    teams: frozenset[UUID] = frozenset()
    permission_revision: int = 0


async def find(tx: AnyTransaction, principal_id: UUID) -> Principal | None:
    """The principal with its teams."""
    row = (await tx.connection.execute(_FIND, {"tenant": tx.scope.tenant_id, "principal": principal_id})).one_or_none()
    return None if row is None else _principal(row)


async def find_by_subject(tx: AnyTransaction, issuer: str, subject: str) -> Principal | None:
    """Whom an issuer means by a subject; another issuer means somebody else by the same word."""
    parameters = {"tenant": tx.scope.tenant_id, "issuer": issuer, "subject": subject}
    row = (await tx.connection.execute(_FIND_BY_SUBJECT, parameters)).one_or_none()
    return None if row is None else _principal(row)


async def page(tx: WorkerTransaction, after: UUID | None, limit: int) -> list[Principal]:
    """Principals by id (and so by age) behind ``after``."""
    parameters = {"tenant": tx.scope.tenant_id, "after": after, "limit": limit}
    return [_principal(row) for row in await tx.connection.execute(_PAGE, parameters)]


async def first_operator(tx: WorkerTransaction) -> UUID | None:
    """The oldest of the tenant's that is active."""
    principal_id: UUID | None = await tx.connection.scalar(_FIRST_OPERATOR, {"tenant": tx.scope.tenant_id})
    return principal_id


async def existing(tx: AnyTransaction, principal_ids: Iterable[UUID]) -> set[UUID]:
    """Which of these are principals of the tenant."""
    parameters = {"tenant": tx.scope.tenant_id, "principals": list(principal_ids)}
    return set(await tx.connection.scalars(_EXISTING, parameters))


async def insert(tx: WorkerTransaction, principal_id: UUID, name: str, role: str = "member") -> None:
    """Adds a principal; one that is there stays as it is."""
    await add(tx, Principal(principal_id, name, role, "active", None, None, utc_now()))


async def add(tx: WorkerTransaction, principal: Principal) -> bool:
    """False, and nothing changed, where the id is taken or the subject is somebody else's."""
    await permission.of_principal(tx, principal.principal_id)
    result = await tx.connection.execute(
        _INSERT,
        {
            "tenant": tx.scope.tenant_id,
            "principal": principal.principal_id,
            "name": principal.name,
            "role": principal.role,
            "issuer": principal.issuer,
            "subject": principal.subject,
            "created_at": principal.created_at,
        },
    )
    return result.rowcount == 1


async def lock(tx: WorkerTransaction, principal_id: UUID) -> Principal | None:
    """The principal, which nobody else changes until this transaction ends."""
    await tx.connection.execute(_LOCK, {"tenant": tx.scope.tenant_id, "principal": principal_id})
    return await find(tx, principal_id)


async def update(tx: WorkerTransaction, principal: Principal) -> bool:
    """The principal as it is to stand, teams aside. False, and nothing changed, where its subject is somebody else's."""
    # First, since it holds the tenant's row: of two who take one subject, the second sees that it is taken.
    await permission.of_principal(tx, principal.principal_id)
    result = await tx.connection.execute(
        _UPDATE,
        {
            "tenant": tx.scope.tenant_id,
            "principal": principal.principal_id,
            "name": principal.name,
            "role": principal.role,
            "status": principal.status,
            "issuer": principal.issuer,
            "subject": principal.subject,
        },
    )
    return result.rowcount == 1


def _principal(row: sa.Row[Any]) -> Principal:
    return Principal(
        principal_id=row.principal_id,
        name=row.name,
        role=row.role,
        status=row.status,
        issuer=row.issuer,
        subject=row.subject,
        created_at=row.created_at,
        teams=frozenset(row.teams),
        permission_revision=row.permission_revision,
    )
