"""Teams and who belongs to them. What a team reads is open to its members, and to nobody from the commit on that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.scopes import team_key
from coatcheck.domain.sessions import Visibility
from coatcheck.store import permission
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.outbox import AT_ONCE

_PAGE = sa.text("""
    SELECT t.team_id, t.name, t.created_at,
           (SELECT count(*) FROM memberships m WHERE m.tenant_id = t.tenant_id AND m.team_id = t.team_id) AS members
      FROM teams t
     WHERE t.tenant_id = :tenant AND (CAST(:after AS uuid) IS NULL OR t.team_id > :after)
     ORDER BY t.team_id LIMIT :limit
""")

_LOCK = sa.text("SELECT team_id FROM teams WHERE tenant_id = :tenant AND team_id = :team FOR KEY SHARE")

_INSERT = sa.text("""
    INSERT INTO teams (tenant_id, team_id, name, created_at) VALUES (:tenant, :team, :name, :created_at) ON CONFLICT DO NOTHING
""")

_DELETE = sa.text("DELETE FROM teams WHERE tenant_id = :tenant AND team_id = :team")

# What was the team's is from now on its owner's alone.
_NARROW_SESSIONS = sa.text("""
    UPDATE sessions SET visibility = 'personal', acl = array_remove(acl, :key), writers = array_remove(writers, :key)
     WHERE tenant_id = :tenant AND visibility = :visibility AND erased_at IS NULL
    RETURNING session_id
""")

_TELL_INDEX = sa.text("""
    INSERT INTO outbox (tenant_id, item_id, kind, session_id, next_attempt_at)
    SELECT :tenant, gen_random_uuid(), 'acl', session_id, :due FROM unnest(CAST(:sessions AS uuid[])) AS given(session_id)
""")

_MEMBERS = sa.text("""
    SELECT team_id, principal_id, created_at FROM memberships
     WHERE tenant_id = :tenant AND (CAST(:team AS uuid) IS NULL OR team_id = :team)
       AND (CAST(:after_team AS uuid) IS NULL OR (team_id, principal_id) > (:after_team, CAST(:after_principal AS uuid)))
     ORDER BY team_id, principal_id LIMIT :limit
""")

_MEMBER = sa.text("""
    SELECT team_id, principal_id, created_at FROM memberships
     WHERE tenant_id = :tenant AND team_id = :team AND principal_id = :principal
""")

_JOIN = sa.text("""
    INSERT INTO memberships (tenant_id, principal_id, team_id, created_at)
    VALUES (:tenant, :principal, :team, :created_at) ON CONFLICT DO NOTHING
""")

_LEAVE = sa.text("DELETE FROM memberships WHERE tenant_id = :tenant AND principal_id = :principal AND team_id = :team")


@dataclass(frozen=True, slots=True)
class Team:
    """A team, and how many belong to it."""

    team_id: UUID
    name: str
    created_at: datetime
    members: int


@dataclass(frozen=True, slots=True)
class Membership:
    """One principal in one team."""

    team_id: UUID
    principal_id: UUID
    created_at: datetime


async def page(tx: WorkerTransaction, after: UUID | None, limit: int) -> list[Team]:
    """Teams by id (and so by age) behind ``after``."""
    parameters = {"tenant": tx.scope.tenant_id, "after": after, "limit": limit}
    return [Team(row.team_id, row.name, row.created_at, row.members) for row in await tx.connection.execute(_PAGE, parameters)]


async def lock(tx: WorkerTransaction, team_id: UUID) -> bool:
    """Whether there is the team, which nobody ends before this transaction does."""
    return await tx.connection.scalar(_LOCK, {"tenant": tx.scope.tenant_id, "team": team_id}) is not None


async def insert(tx: WorkerTransaction, team_id: UUID, name: str, at: datetime) -> None:
    """Adds a team; one that is there stays as it is."""
    await tx.connection.execute(_INSERT, {"tenant": tx.scope.tenant_id, "team": team_id, "name": name, "created_at": at})
    await permission.of_team(tx, team_id)


async def delete(tx: WorkerTransaction, team_id: UUID) -> bool:
    """Ends the team and all its memberships; its sessions become personal, and the index is owed as much. False: no such team."""
    await permission.of_team(tx, team_id)
    deleted = await tx.connection.execute(_DELETE, {"tenant": tx.scope.tenant_id, "team": team_id})
    if deleted.rowcount == 0:
        return False
    rights = {"tenant": tx.scope.tenant_id, "key": team_key(team_id)}
    narrowed = await tx.connection.scalars(_NARROW_SESSIONS, {**rights, "visibility": str(Visibility("team", team_id))})
    owed = {"tenant": tx.scope.tenant_id, "sessions": sorted(narrowed), "due": AT_ONCE}
    await tx.connection.execute(_TELL_INDEX, owed)
    return True


async def memberships(tx: WorkerTransaction, team_id: UUID | None, after: tuple[UUID, UUID] | None, limit: int) -> list[Membership]:
    """Memberships by (team, principal) behind ``after``; of one team, when given."""
    after_team, after_principal = after or (None, None)
    parameters = {
        "tenant": tx.scope.tenant_id,
        "team": team_id,
        "after_team": after_team,
        "after_principal": after_principal,
        "limit": limit,
    }
    rows = await tx.connection.execute(_MEMBERS, parameters)
    return [Membership(row.team_id, row.principal_id, row.created_at) for row in rows]


async def membership(tx: WorkerTransaction, principal_id: UUID, team_id: UUID) -> Membership | None:
    """The membership, where there is one."""
    parameters = {"tenant": tx.scope.tenant_id, "principal": principal_id, "team": team_id}
    row = (await tx.connection.execute(_MEMBER, parameters)).one_or_none()
    return None if row is None else Membership(row.team_id, row.principal_id, row.created_at)


async def join(tx: WorkerTransaction, principal_id: UUID, team_id: UUID, at: datetime) -> None:
    """Makes a principal a member; one that is a member stays one."""
    parameters = {"tenant": tx.scope.tenant_id, "principal": principal_id, "team": team_id, "created_at": at}
    await tx.connection.execute(_JOIN, parameters)
    await permission.of_principal(tx, principal_id)


async def leave(tx: WorkerTransaction, principal_id: UUID, team_id: UUID) -> bool:
    """Ends a membership: what the team reads is closed to the principal from this commit on. False when it was no member."""
    parameters = {"tenant": tx.scope.tenant_id, "principal": principal_id, "team": team_id}
    left = await tx.connection.execute(_LEAVE, parameters)
    await permission.of_principal(tx, principal_id)
    return left.rowcount == 1
