"""An API key with all that decides what it may do, in one question: every request asks it."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from coatcheck.domain.scopes import NIL
from coatcheck.identity.operations import Role
from coatcheck.identity.ports import KeyRecord
from coatcheck.store import binary
from coatcheck.store.database import WorkerTransaction

# A tenant without the key is a row as well, and the principal is looked up as well: an unknown key must not be told by less work.
_FIND: LiteralString = """
    SELECT k.key_id, k.principal_id, k.secret_hash, k.key_version, k.operations, k.sessions, k.expires_at, k.revoked_at,
           p.role, p.status, t.status, t.permission_revision, p.permission_revision,
           ARRAY(SELECT m.team_id FROM memberships m
                  WHERE m.tenant_id = %(tenant)s AND m.principal_id = coalesce(k.principal_id, %(nobody)s))
      FROM tenants t
      LEFT JOIN api_keys k ON k.tenant_id = t.tenant_id AND k.key_id = %(key)s
      LEFT JOIN principals p ON p.tenant_id = t.tenant_id AND p.principal_id = coalesce(k.principal_id, %(nobody)s)
     WHERE t.tenant_id = %(tenant)s
"""


async def find_key(tx: WorkerTransaction, key_id: UUID) -> KeyRecord | None:
    """The key, revoked or not, of a principal that is there."""
    found = await binary.fetch(tx.connection, _FIND, {"tenant": tx.scope.tenant_id, "key": key_id, "nobody": NIL})
    if not found or found[0][0] is None or found[0][8] is None:
        return None
    (
        held_id, principal_id, secret_hash, key_version, operations, sessions, expires_at, revoked_at,
        role, principal_status, tenant_status, permission_revision, own_revision, teams,
    ) = found[0]  # fmt: skip
    return KeyRecord(
        tenant_id=tx.scope.tenant_id,
        key_id=held_id,
        principal_id=principal_id,
        secret_hash=secret_hash,
        key_version=key_version,
        operations=frozenset(operations),
        sessions=None if sessions is None else frozenset(sessions),
        expires_at=expires_at,
        revoked_at=revoked_at,
        role=Role(role),
        principal_active=principal_status == "active",
        tenant_active=tenant_status == "active",
        teams=frozenset(teams),
        permission_revision=permission_revision,
        own_revision=own_revision,
    )
