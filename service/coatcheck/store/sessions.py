"""Sessions: whose conversation it is, and who reads and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.sessions import Session, Visibility
from coatcheck.store.database import AnyTransaction, AnyWriteTransaction, WorkerTransaction

_COLUMNS = "session_id, name, owner_id, visibility, participants, acl, writers, created_at, erased_at"

_FIND = sa.text(f"SELECT {_COLUMNS} FROM sessions WHERE tenant_id = :tenant AND session_id = :session AND erased_at IS NULL")

_FIND_ANY = sa.text(f"SELECT {_COLUMNS} FROM sessions WHERE tenant_id = :tenant AND session_id = :session")

_FIND_TO_CHANGE = sa.text(f"""
    SELECT {_COLUMNS} FROM sessions WHERE tenant_id = :tenant AND session_id = :session AND erased_at IS NULL FOR UPDATE
""")

_FIND_BY_NAME = sa.text(f"""
    SELECT {_COLUMNS} FROM sessions
     WHERE tenant_id = :tenant AND owner_id = :owner AND name = :name AND erased_at IS NULL
""")

_INSERT = sa.text("""
    INSERT INTO sessions (tenant_id, session_id, name, owner_id, visibility, participants, acl, writers, created_at)
    VALUES (:tenant, :session, :name, :owner, :visibility, CAST(:participants AS uuid[]), CAST(:acl AS text[]),
            CAST(:writers AS text[]), :created_at)
    ON CONFLICT DO NOTHING
""")

_SUMMARY = f"""
    SELECT {_COLUMNS},
           (SELECT count(*) FROM runs r WHERE r.tenant_id = s.tenant_id AND r.session_id = s.session_id) AS manifests,
           (SELECT count(*) FROM segments g WHERE g.tenant_id = s.tenant_id AND g.session_id = s.session_id) AS segments
      FROM sessions s
     WHERE tenant_id = :tenant AND erased_at IS NULL
"""

_SUMMARY_OF_ONE = sa.text(f"{_SUMMARY} AND session_id = :session")

_PAGE = sa.text(f"""
    {_SUMMARY}
       AND (CAST(:within AS uuid[]) IS NULL OR session_id = ANY (:within))
       AND (CAST(:after_at AS timestamptz) IS NULL OR (created_at, session_id) < (:after_at, CAST(:after_id AS uuid)))
     ORDER BY created_at DESC, session_id DESC
     LIMIT :limit
""")

_SET_VISIBILITY = sa.text(f"""
    UPDATE sessions SET visibility = :visibility, participants = CAST(:participants AS uuid[]), acl = CAST(:acl AS text[]),
                        writers = CAST(:writers AS text[])
     WHERE tenant_id = :tenant AND session_id = :session AND erased_at IS NULL
    RETURNING {_COLUMNS}
""")

_MARK_ERASED = sa.text(f"""
    UPDATE sessions SET erased_at = :at WHERE tenant_id = :tenant AND session_id = :session AND erased_at IS NULL
    RETURNING {_COLUMNS}
""")

# Advisory, since the app role may not lock a session's row: whoever adds to a session shares, whoever takes from it is alone.
_SHARE = sa.text("SELECT pg_advisory_xact_lock_shared(hashtextextended(CAST(:session AS text), 0))")
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended(CAST(:session AS text), 0))")

_DELETE_IN_ORDER = tuple(
    sa.text(f"DELETE FROM {table} WHERE tenant_id = :tenant AND session_id = :session{narrowed}")
    for table, narrowed in (
        ("outbox", " AND kind NOT IN ('erase', 'sweep')"),
        ("entries", ""),
        ("projections", ""),
        ("reductions", ""),
        ("segments", ""),
        ("blobs", ""),
        ("cache_entries", ""),
        ("runs", ""),
        ("cache_entries", ""),
        ("sessions", ""),
    )
)


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session with what can be read in it."""

    session: Session
    manifests: int
    segments: int


async def share(tx: AnyWriteTransaction, session_id: UUID) -> None:
    """For who adds to the session: until this transaction ends, nobody ``lock``s it. To be taken before anything is read."""
    await tx.connection.execute(_SHARE, {"session": str(session_id)})


async def lock(tx: AnyWriteTransaction, session_id: UUID) -> None:
    """For who erases, or records what the index has: until this transaction ends, it is alone with the session's rows."""
    await tx.connection.execute(_LOCK, {"session": str(session_id)})


async def find(tx: AnyTransaction, session_id: UUID) -> Session | None:
    """The session, when it is not erased and may be read."""
    result = await tx.connection.execute(_FIND, {"tenant": tx.scope.tenant_id, "session": session_id})
    return _session_or_none(result)


async def find_any(tx: WorkerTransaction, session_id: UUID) -> Session | None:
    """The session, erased or not."""
    result = await tx.connection.execute(_FIND_ANY, {"tenant": tx.scope.tenant_id, "session": session_id})
    return _session_or_none(result)


async def find_to_change(tx: WorkerTransaction, session_id: UUID) -> Session | None:
    """The session as it stands, which nobody else changes until this transaction ends; None when there is none, or it is erased."""
    result = await tx.connection.execute(_FIND_TO_CHANGE, {"tenant": tx.scope.tenant_id, "session": session_id})
    return _session_or_none(result)


async def find_by_name(tx: AnyTransaction, owner_id: UUID, name: str) -> Session | None:
    """The owner's session of this name, when it is not erased and may be read."""
    result = await tx.connection.execute(_FIND_BY_NAME, {"tenant": tx.scope.tenant_id, "owner": owner_id, "name": name})
    return _session_or_none(result)


async def insert(tx: AnyWriteTransaction, session: Session) -> bool:
    """False when the owner has a session of this name, or the id is taken."""
    result = await tx.connection.execute(
        _INSERT,
        {
            "tenant": tx.scope.tenant_id,
            "session": session.session_id,
            "name": session.name,
            "owner": session.owner_id,
            "created_at": session.created_at,
            **_rights(session.visibility, session.participants, session.acl, session.writers),
        },
    )
    return result.rowcount == 1


async def summary(tx: AnyTransaction, session_id: UUID) -> SessionSummary | None:
    """The session with its counts, when it is not erased and may be read."""
    result = await tx.connection.execute(_SUMMARY_OF_ONE, {"tenant": tx.scope.tenant_id, "session": session_id})
    row = result.one_or_none()
    return None if row is None else _summary(row)


async def page(
    tx: AnyTransaction, after: tuple[datetime, UUID] | None, limit: int, within: frozenset[UUID] | None = None
) -> list[SessionSummary]:
    """Sessions that may be read, newest first, behind ``after`` (created at, session id); only those ``within``, when given."""
    at, session_id = after or (None, None)
    parameters = {
        "tenant": tx.scope.tenant_id,
        "within": None if within is None else list(within),
        "after_at": at,
        "after_id": session_id,
        "limit": limit,
    }
    return [_summary(row) for row in await tx.connection.execute(_PAGE, parameters)]


async def set_visibility(
    tx: WorkerTransaction,
    session_id: UUID,
    visibility: Visibility,
    participants: Sequence[UUID],
    acl: Sequence[str],
    writers: Sequence[str],
) -> Session | None:
    """The session as it stands now; None when there is none, or it is erased."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, **_rights(visibility, participants, acl, writers)}
    return _session_or_none(await tx.connection.execute(_SET_VISIBILITY, parameters))


async def mark_erased(tx: WorkerTransaction, session_id: UUID, at: datetime) -> Session | None:
    """The session, from this commit on unreachable with all that hangs on it; None when there was nothing left to erase."""
    result = await tx.connection.execute(_MARK_ERASED, {"tenant": tx.scope.tenant_id, "session": session_id, "at": at})
    return _session_or_none(result)


async def delete(tx: WorkerTransaction, session_id: UUID) -> None:
    """Deletes the session and every row that hangs on it, outstanding work except its own erasure included."""
    for statement in _DELETE_IN_ORDER:
        await tx.connection.execute(statement, {"tenant": tx.scope.tenant_id, "session": session_id})


def _rights(visibility: Visibility, participants: Sequence[UUID], acl: Sequence[str], writers: Sequence[str]) -> dict[str, object]:
    return {
        "visibility": str(visibility),
        "participants": list(participants),
        "acl": list(acl),
        "writers": list(writers),
    }


def _session_or_none(result: sa.CursorResult[Any]) -> Session | None:
    row = result.one_or_none()
    return None if row is None else _session(row)


def _summary(row: sa.Row[Any]) -> SessionSummary:
    return SessionSummary(_session(row), row.manifests, row.segments)


def _session(row: sa.Row[Any]) -> Session:
    return Session(
        session_id=row.session_id,
        name=row.name,
        owner_id=row.owner_id,
        visibility=Visibility.parse(row.visibility),
        acl=tuple(row.acl),
        writers=tuple(row.writers),
        participants=tuple(row.participants),
        created_at=row.created_at,
        erased_at=row.erased_at,
    )
