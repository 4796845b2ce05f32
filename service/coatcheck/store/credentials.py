"""Credentials with all that decides what they may do. An API key's is one question: every request asks it."""

from __future__ import annotations

import dataclasses
import functools
from typing import LiteralString
from uuid import UUID

from coatcheck.domain.scopes import NIL
from coatcheck.identity.context import Credential, CredentialKind
from coatcheck.identity.doors import Door
from coatcheck.identity.operations import Role
from coatcheck.identity.ports import KeyRecord, RightsRecord
from coatcheck.store import binary, delegations, directory, issuers, principals
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.delegations import DelegationRow
from coatcheck.store.directory import ApiKeyRow
from coatcheck.store.principals import Principal

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
    if not found or found[0][8] is None:  # no tenant; no principal, and so no key
        return None
    (
        held_id, principal_id, secret_hash, key_version, operations, sessions, expires_at, revoked_at,
        role, principal_status, tenant_status, permission_revision, own_revision, teams,
    ) = found[0]  # fmt: skip
    rights = RightsRecord(
        tenant_id=tx.scope.tenant_id,
        principal_id=principal_id,
        role=Role(role),
        principal_active=principal_status == "active",
        tenant_active=tenant_status == "active",
        teams=frozenset(teams),
        permission_revision=permission_revision,
        own_revision=own_revision,
        operations=frozenset(operations),
        sessions=None if sessions is None else frozenset(sessions),
        expires_at=expires_at,
        revoked_at=revoked_at,
    )
    return KeyRecord(held_id, secret_hash, key_version, rights)


async def find_delegation(tx: WorkerTransaction, delegation_id: UUID) -> KeyRecord | None:
    """Revoked when anything above it is, expired when the first of them is. The same is asked whether there is one or not."""
    chain = await delegations.chain(tx, delegation_id)
    top = chain[-1] if chain else None
    key = await directory.find_key(tx, (top.parent_key_id if top is not None else None) or NIL)
    speaks = await issuers.speaks_for(tx, (top.parent_issuer if top is not None else None) or "")
    rights = await _of_role(tx, await principals.find(tx, top.principal_id if top is not None else NIL))
    if top is None or rights is None or (key is None and not speaks):
        return None
    above: list[DelegationRow | ApiKeyRow] = [*chain, key] if key is not None else [*chain]
    return KeyRecord(chain[0].delegation_id, chain[0].secret_hash, chain[0].key_version, _narrowed(rights, chain, above))


async def find_subject(tx: WorkerTransaction, issuer: str, subject: str) -> RightsRecord | None:
    """Of whom an issuer that speaks for the tenant means by the subject."""
    speaks = await issuers.speaks_for(tx, issuer)
    rights = await _of_role(tx, await principals.find_by_subject(tx, issuer, subject))
    return rights if speaks else None


async def find_rights(tx: WorkerTransaction, credential: Credential) -> RightsRecord | None:
    """Those that a credential has now which was verified before."""
    if credential.kind is CredentialKind.TOKEN:
        return await find_subject(tx, credential.reference, credential.subject)
    find = find_key if credential.kind is CredentialKind.KEY else find_delegation
    record = await find(tx, UUID(credential.reference))
    return None if record is None else record.rights


async def _of_role(tx: WorkerTransaction, principal: Principal | None) -> RightsRecord | None:
    """Whatever the principal's role grants it, for as long as it has that."""
    tenant = await directory.find_tenant(tx)
    if tenant is None or principal is None:
        return None
    return RightsRecord(
        tenant_id=tenant.tenant_id,
        principal_id=principal.principal_id,
        role=Role(principal.role),
        principal_active=principal.status == "active",
        tenant_active=tenant.status == "active",
        teams=principal.teams,
        permission_revision=tenant.permission_revision,
        own_revision=principal.permission_revision,
        operations=None,
        sessions=None,
        expires_at=None,
        revoked_at=None,
    )


def _narrowed(rights: RightsRecord, chain: list[DelegationRow], above: list[DelegationRow | ApiKeyRow]) -> RightsRecord:
    """What all of them allow: each was made narrower than the one above it, and here that is not taken for granted."""
    kept = [row.sessions for row in above if row.sessions is not None]
    return dataclasses.replace(
        rights,
        principal_active=rights.principal_active and {row.principal_id for row in above} == {rights.principal_id},
        operations=frozenset.intersection(*(row.operations for row in above)),
        sessions=functools.reduce(frozenset.intersection, kept) if kept else None,
        expires_at=min(row.expires_at for row in above if row.expires_at is not None),
        revoked_at=min((row.revoked_at for row in above if row.revoked_at is not None), default=None),
        doors=frozenset(Door) & frozenset.intersection(*(row.audience for row in chain)),
    )
