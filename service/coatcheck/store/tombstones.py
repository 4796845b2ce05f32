"""Tombstones: what was erased, and who could have read it. No content, and no way back to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store.database import AnyTransaction, WorkerTransaction

# The same hash may be erased from two sessions: whoever could read one of them learns of it.
_INSERT = sa.text("""
    INSERT INTO tombstones (tenant_id, kind, key, session_id, manifest_id, acl, erased_at)
    SELECT :tenant, :kind, key, :session, :manifest, CAST(:acl AS text[]), :erased_at
      FROM unnest(CAST(:keys AS text[])) AS given(key)
     ORDER BY key
    ON CONFLICT (tenant_id, kind, key)
    DO UPDATE SET acl = ARRAY(SELECT unnest(tombstones.acl) UNION SELECT unnest(excluded.acl) ORDER BY 1)
""")

_FIND = sa.text("""
    SELECT kind, key, session_id, manifest_id, acl, erased_at FROM tombstones
     WHERE tenant_id = :tenant AND kind = :kind AND key = :key
""")

_EXISTING = sa.text("""
    SELECT t.kind, t.key FROM unnest(CAST(:kinds AS text[]), CAST(:keys AS text[])) AS asked(kind, key)
      JOIN tombstones t ON t.tenant_id = :tenant AND t.kind = asked.kind AND t.key = asked.key
""")


_SHARE_HANDOFFS = sa.text("""
    UPDATE tombstones SET acl = CAST(:acl AS text[])
     WHERE tenant_id = :tenant AND kind = 'handoff' AND session_id = :session AND acl <> CAST(:acl AS text[])
""")


@dataclass(frozen=True, slots=True)
class Tombstone:
    """``kind``: session, manifest, segment, handoff or request; ``key``: its id or a keyed hash."""

    kind: str
    key: str
    session_id: UUID | None
    manifest_id: UUID | None
    acl: tuple[str, ...]
    erased_at: datetime


async def insert(
    tx: WorkerTransaction,
    kind: str,
    keys: Sequence[str],
    session_id: UUID | None,
    manifest_id: UUID | None,
    acl: Sequence[str],
    erased_at: datetime,
) -> None:
    """Raises stones for keys of one kind. One that stands keeps what it says; those who may see it become more."""
    if keys:
        await tx.connection.execute(
            _INSERT,
            {
                "tenant": tx.scope.tenant_id,
                "kind": kind,
                "keys": list(dict.fromkeys(keys)),
                "session": session_id,
                "manifest": manifest_id,
                "acl": list(acl),
                "erased_at": erased_at,
            },
        )


async def insert_handoff(
    tx: WorkerTransaction, sha256: str, session_id: UUID, manifest_id: UUID, acl: Sequence[str], at: datetime
) -> None:
    """Remembers a handoff's text by its hash: it is the manifest's, in this session, though it stands there no longer."""
    await insert(tx, "handoff", [f"{session_id}/{sha256}"], session_id, manifest_id, acl, at)


async def share_handoffs(tx: WorkerTransaction, session_id: UUID, acl: Sequence[str]) -> None:
    """Superseded handoffs of a living session are known to whoever may read the session now: their text is not to be stored."""
    await tx.connection.execute(_SHARE_HANDOFFS, {"tenant": tx.scope.tenant_id, "session": session_id, "acl": list(acl)})


async def find(tx: AnyTransaction, kind: str, key: str) -> Tombstone | None:
    """The stone, when the caller could have read what lies under it."""
    row = (await tx.connection.execute(_FIND, {"tenant": tx.scope.tenant_id, "kind": kind, "key": key})).one_or_none()
    if row is None:
        return None
    return Tombstone(row.kind, row.key, row.session_id, row.manifest_id, tuple(row.acl), row.erased_at)


async def existing(tx: AnyTransaction, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Which of these (kind, key) have a stone."""
    parameters = {
        "tenant": tx.scope.tenant_id,
        "kinds": [kind for kind, _ in keys],
        "keys": [key for _, key in keys],
    }
    return {(row.kind, row.key) for row in await tx.connection.execute(_EXISTING, parameters)}
