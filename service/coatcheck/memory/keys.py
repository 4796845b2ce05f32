"""API keys: made, listed, revoked, rotated. A key is shown once; what is stored cannot be turned back into it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from coatcheck.domain.errors import FieldError, Forbidden, InvalidRequest, NotFound
from coatcheck.identity.context import RequestContext
from coatcheck.identity.credentials import ApiKey, new_api_key
from coatcheck.identity.operations import EVERYTHING, Operation, Role
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.pages import page_of
from coatcheck.memory.standing import require_standing_alone
from coatcheck.store import audit, directory, principals
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.directory import ApiKeyRow
from coatcheck_client.wire import KeyCreate, KeyOut, KeyPage


@dataclass(frozen=True, slots=True)
class Grant:
    """Whose a key is, what it may do, on which sessions (None: all its principal's) and until when."""

    principal_id: UUID
    operations: frozenset[str]
    sessions: frozenset[UUID] | None
    expires_at: datetime | None


class Keys:
    """The use cases behind ``/v1/admin/keys``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(self, context: RequestContext, page_size: int, page_token: str | None) -> KeyPage:
        """An operator sees its tenant's keys, anybody else its principal's; of these only those kept to the caller's sessions."""
        context.require(Operation.KEYS)

        async def after(tx: WorkerTransaction, position: str | None, limit: int) -> list[ApiKeyRow]:
            return await directory.page_keys(tx, UUID(position) if position else None, limit, _whose(context), context.sessions)

        rows, token = await page_of(self._parts, context, "keys", page_size, page_token, after, lambda row: str(row.key_id))
        return KeyPage(keys=[_key_out(row) for row in rows], next_page_token=token)

    async def create(self, context: RequestContext, asked: KeyCreate) -> KeyOut:
        """A key never grants what its maker does not hold, nor more than its holder's role. Raises Forbidden, InvalidRequest."""
        context.require(Operation.KEYS)
        holder_id = asked.principal_id or context.principal_id
        if set(asked.operations or ()) - EVERYTHING:
            raise InvalidRequest(f"An operation is not known; there are {', '.join(sorted(EVERYTHING))}.")
        if asked.expires_at is not None and asked.expires_at <= self._parts.clock():
            raise InvalidRequest("The key would have ended already.", errors=[FieldError("/expires_at", "is not in the future")])
        # Power over every tenant is handed to nobody by being silent.
        unnamed = context.operations if holder_id == context.principal_id else context.operations - {Operation.TENANTS}
        granted = Grant(
            principal_id=holder_id,
            operations=unnamed if asked.operations is None else frozenset(asked.operations),
            sessions=frozenset(asked.sessions) if asked.sessions is not None else context.sessions,
            expires_at=asked.expires_at,
        )
        fresh = new_api_key(context.tenant_id, self._parts.new_id())

        async def work(tx: WorkerTransaction) -> ApiKeyRow:
            await require_standing_alone(tx, context, self._parts.clock)
            within = self._within(context, granted)
            holder = await principals.find(tx, within.principal_id)
            if holder is None:
                raise InvalidRequest("The principal is not known.")
            ceiling = Role(holder.role).ceiling
            if asked.operations is not None and within.operations - ceiling:
                raise InvalidRequest("The principal's role does not allow one of the operations.")
            within = dataclasses.replace(within, operations=within.operations & ceiling)
            row = await add_key(self._parts, tx, fresh, asked.name, within)
            await audit.record(tx, self._parts.new_id(), context.actor, "key.create", "key", str(fresh.key_id))
            return row

        return _key_out(await self._parts.database.work(context.tenant_scope, work), fresh.text)

    async def revoke(self, context: RequestContext, key_id: UUID) -> KeyOut:
        """Effective with the next request. Revoking a revoked key changes nothing. Raises NotFound, Forbidden."""
        context.require(Operation.KEYS)

        async def work(tx: WorkerTransaction) -> ApiKeyRow:
            _require_rights_of(context, await _in_reach(context, tx, key_id))
            row = await directory.revoke_key(tx, key_id, self._parts.clock())
            if row is None:  # gone between the two: its principal was
                raise NotFound
            await audit.record(tx, self._parts.new_id(), context.actor, "key.revoke", "key", str(key_id))
            return row

        return _key_out(await self._parts.database.work(context.tenant_scope, work))

    async def rotate(self, context: RequestContext, key_id: UUID) -> KeyOut:
        """A new key with the old one's rights; the old one is revoked in the same transaction.

        Raises NotFound, also of one that has ended, and Forbidden for a key that the caller could not make.
        """
        context.require(Operation.KEYS)
        fresh = new_api_key(context.tenant_id, self._parts.new_id())

        async def work(tx: WorkerTransaction) -> ApiKeyRow:
            await require_standing_alone(tx, context, self._parts.clock)
            old = await _in_reach(context, tx, key_id)
            if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= self._parts.clock()):
                raise NotFound
            within = self._within(context, Grant(old.principal_id, old.operations, old.sessions, old.expires_at))
            await directory.revoke_key(tx, key_id, self._parts.clock())
            row = await add_key(self._parts, tx, fresh, old.name, within)
            await audit.record(tx, self._parts.new_id(), context.actor, "key.rotate", "key", str(key_id))
            return row

        return _key_out(await self._parts.database.work(context.tenant_scope, work), fresh.text)

    def _within(self, context: RequestContext, granted: Grant) -> Grant:
        """The grant, if the caller's own credential covers it, ending no later than that does. Raises Forbidden."""
        if granted.operations - context.operations:
            raise Forbidden("A key cannot grant an operation that its maker does not hold.")
        if context.sessions is not None and (granted.sessions is None or granted.sessions - context.sessions):
            raise Forbidden("A key cannot reach a session that its maker does not.")
        if _whose(context) not in (None, granted.principal_id):
            raise Forbidden("Only an operator makes keys for somebody else.")
        ends_at = context.credential.expires_at
        if ends_at is None:
            return granted
        if granted.expires_at is not None and granted.expires_at > ends_at:
            raise Forbidden("A key cannot outlive the one that makes it.")
        return dataclasses.replace(granted, expires_at=granted.expires_at or ends_at)


async def add_operators_key(
    parts: Collaborators, tx: WorkerTransaction, fresh: ApiKey, name: str, operations: frozenset[str]
) -> None:
    """A key of the tenant's oldest operator that is active; where there is none, of one that is made."""
    principal_id = await principals.first_operator(tx) or parts.new_id()
    await principals.insert(tx, principal_id, "operator", "operator")
    await add_key(parts, tx, fresh, name, Grant(principal_id, operations, None, None))


async def add_key(parts: Collaborators, tx: WorkerTransaction, fresh: ApiKey, name: str, granted: Grant) -> ApiKeyRow:
    """The one way in which a key comes to be, whoever has authorised it."""
    row = ApiKeyRow(
        key_id=fresh.key_id,
        principal_id=granted.principal_id,
        name=name,
        secret_hash=parts.keyring.key_hash(tx.scope.tenant_id, fresh.secret),
        key_version=parts.keyring.version,
        operations=granted.operations,
        sessions=granted.sessions,
        created_at=parts.clock(),
        expires_at=granted.expires_at,
        revoked_at=None,
    )
    await directory.insert_key(tx, row)
    return row


def _whose(context: RequestContext) -> UUID | None:
    """Whose keys the caller may handle: None is everybody's, for an operator whose credential reaches every session."""
    return None if context.is_operator and context.sessions is None else context.principal_id


async def _in_reach(context: RequestContext, tx: WorkerTransaction, key_id: UUID) -> ApiKeyRow:
    """The key, if the caller's list would hold it. Raises NotFound."""
    row = await directory.find_key(tx, key_id)
    if row is None or _whose(context) not in (None, row.principal_id):
        raise NotFound
    if context.sessions is not None and (row.sessions is None or row.sessions - context.sessions):
        raise NotFound
    return row


def _require_rights_of(context: RequestContext, key: ApiKeyRow) -> None:
    """Whoever could not use a key in another's place does not end it either; an operator ends any but the installation's own."""
    if _whose(context) is None:
        if Operation.TENANTS in key.operations - context.operations:
            raise Forbidden("Only who may manage tenants revokes a key that may.")
    elif key.operations - context.operations:
        raise Forbidden("A key cannot revoke one that grants what it does not itself.")


def _key_out(row: ApiKeyRow, key: str | None = None) -> KeyOut:
    return KeyOut(
        key_id=row.key_id, name=row.name, principal_id=row.principal_id, operations=sorted(row.operations),
        sessions=None if row.sessions is None else sorted(row.sessions), created_at=row.created_at, expires_at=row.expires_at,
        revoked_at=row.revoked_at, key=key,
    )  # fmt: skip
