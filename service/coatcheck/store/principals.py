"""Principals and the teams they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store.database import AnyTransaction, WorkerTransaction
from coatcheck.store.directory import raise_permission_revision

_FIND = sa.text("""
    SELECT p.principal_id, p.name, p.status,
           ARRAY(SELECT m.team_id FROM memberships m
                  WHERE m.tenant_id = p.tenant_id AND m.principal_id = p.principal_id ORDER BY 1) AS teams
      FROM principals p WHERE p.tenant_id = :tenant AND p.principal_id = :principal
""")

_FIRST = sa.text("SELECT principal_id FROM principals WHERE tenant_id = :tenant ORDER BY created_at, principal_id LIMIT 1")

_EXISTING = sa.text("SELECT principal_id FROM principals WHERE tenant_id = :tenant AND principal_id = ANY (:principals)")

_INSERT = sa.text("""
    INSERT INTO principals (tenant_id, principal_id, name) VALUES (:tenant, :principal, :name) ON CONFLICT DO NOTHING
""")

_INSERT_TEAM = sa.text("INSERT INTO teams (tenant_id, team_id, name) VALUES (:tenant, :team, :name) ON CONFLICT DO NOTHING")

_JOIN_TEAM = sa.text("""
    INSERT INTO memberships (tenant_id, principal_id, team_id) VALUES (:tenant, :principal, :team) ON CONFLICT DO NOTHING
""")

_LEAVE_TEAM = sa.text("DELETE FROM memberships WHERE tenant_id = :tenant AND principal_id = :principal AND team_id = :team")


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody or something that acts; ``status`` is ``active`` or not."""

    principal_id: UUID
    name: str
    status: str
    teams: frozenset[UUID]


async def find(tx: AnyTransaction, principal_id: UUID) -> Principal | None:
    """The principal with its teams."""
    row = (await tx.connection.execute(_FIND, {"tenant": tx.scope.tenant_id, "principal": principal_id})).one_or_none()
    return None if row is None else Principal(row.principal_id, row.name, row.status, frozenset(row.teams))


async def first(tx: WorkerTransaction) -> UUID | None:
    """The tenant's oldest principal."""
    principal_id: UUID | None = await tx.connection.scalar(_FIRST, {"tenant": tx.scope.tenant_id})
    return principal_id


async def existing(tx: AnyTransaction, principal_ids: Iterable[UUID]) -> set[UUID]:
    """Which of these are principals of the tenant."""
    parameters = {"tenant": tx.scope.tenant_id, "principals": list(principal_ids)}
    return set(await tx.connection.scalars(_EXISTING, parameters))


async def insert(tx: WorkerTransaction, principal_id: UUID, name: str) -> None:
    """Adds a principal; one that is there stays as it is."""
    await tx.connection.execute(_INSERT, {"tenant": tx.scope.tenant_id, "principal": principal_id, "name": name})
    await raise_permission_revision(tx)


async def insert_team(tx: WorkerTransaction, team_id: UUID, name: str) -> None:
    """Adds a team; one that is there stays as it is."""
    await tx.connection.execute(_INSERT_TEAM, {"tenant": tx.scope.tenant_id, "team": team_id, "name": name})
    await raise_permission_revision(tx)


async def join_team(tx: WorkerTransaction, principal_id: UUID, team_id: UUID) -> None:
    """Makes a principal a member."""
    await tx.connection.execute(_JOIN_TEAM, {"tenant": tx.scope.tenant_id, "principal": principal_id, "team": team_id})
    await raise_permission_revision(tx)


async def leave_team(tx: WorkerTransaction, principal_id: UUID, team_id: UUID) -> None:
    """Ends a membership: what the team reads is closed to the principal from this commit on."""
    await tx.connection.execute(_LEAVE_TEAM, {"tenant": tx.scope.tenant_id, "principal": principal_id, "team": team_id})
    await raise_permission_revision(tx)
