"""Delegations: made, listed, revoked. A delegate is its maker, but narrower, for a while, through fewer doors."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, cast
from uuid import UUID

from coatcheck.domain.errors import Forbidden, InvalidRequest, NotFound
from coatcheck.identity.context import CredentialKind, RequestContext
from coatcheck.identity.credentials import new_api_key
from coatcheck.identity.doors import EVERY_DOOR
from coatcheck.identity.operations import DELEGABLE, EVERYTHING, Operation
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.pages import page_of
from coatcheck.memory.standing import require_standing
from coatcheck.store import audit, delegations, directory
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.delegations import DelegationRow
from coatcheck_client.wire import DelegationCreate, DelegationOut, DelegationPage

MAX_DEPTH = 3
"""A person's agent, its helper, and that one's tool."""
MAX_LIVING = 1_000
"""For each principal, so that a loop that delegates does not fill the table."""
DEFAULT_LIFE = timedelta(hours=1)
REMEMBERED = timedelta(days=7)
"""How long one that has ended is still listed."""


class Delegations:
    """The use cases behind ``/v1/delegations``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(self, context: RequestContext, page_size: int, page_token: str | None) -> DelegationPage:
        """The principal's own; a delegate sees only what it has made itself, directly or not."""
        context.require(Operation.DELEGATE)
        parent_id = _own_delegation(context)

        async def after(tx: WorkerTransaction, position: str | None, limit: int) -> list[DelegationRow]:
            behind = UUID(position) if position else None
            return await delegations.page(tx, context.principal_id, parent_id, context.sessions, behind, limit)

        listing = f"delegations {context.principal_id} {parent_id or ''}"
        rows, token = await page_of(self._parts, context, listing, page_size, page_token, after, lambda r: str(r.delegation_id))
        return DelegationPage(delegations=[_out(row) for row in rows], next_page_token=token)

    async def create(self, context: RequestContext, asked: DelegationCreate) -> DelegationOut:
        """Raises Forbidden for anything that the caller's own credential does not hold, InvalidRequest."""
        context.require(Operation.DELEGATE)
        operations = frozenset(asked.operations)
        if operations - EVERYTHING:
            raise InvalidRequest(f"An operation is not known; a delegate may be given {', '.join(sorted(DELEGABLE))}.")
        if operations - (context.operations & DELEGABLE):
            raise Forbidden("A delegate does no more than its maker, and nothing that administers.")
        sessions = frozenset(asked.sessions) if asked.sessions is not None else context.sessions
        if context.sessions is not None and (sessions is None or sessions - context.sessions):
            raise Forbidden("A delegate cannot reach a session that its maker does not.")
        fresh = new_api_key(context.tenant_id, self._parts.new_id(), CredentialKind.DELEGATION)
        now = self._parts.clock()
        expires_at = _end(context, now, asked.expires_in_s)

        async def work(tx: WorkerTransaction) -> DelegationRow:
            above = await self._above(context, tx)
            doors = above.audience if above is not None else EVERY_DOOR
            depth = above.depth + 1 if above is not None else 1
            if frozenset(asked.audience) - doors:
                raise Forbidden("A delegate comes through no door that its maker does not.")
            if depth > MAX_DEPTH or (depth == MAX_DEPTH and Operation.DELEGATE in operations):
                raise Forbidden(f"Nobody delegates further than {MAX_DEPTH} times.")
            if await delegations.count_living(tx, context.principal_id, now) >= MAX_LIVING:
                raise InvalidRequest(f"A principal has at most {MAX_LIVING:,} delegations at a time.")
            kind, reference = context.credential.kind, context.credential.reference
            row = DelegationRow(
                delegation_id=fresh.key_id,
                principal_id=context.principal_id,
                parent_key_id=UUID(reference) if kind is CredentialKind.KEY else None,
                parent_delegation_id=above.delegation_id if above is not None else None,
                parent_issuer=reference if kind is CredentialKind.TOKEN else None,
                depth=depth,
                name=asked.name,
                secret_hash=self._parts.keyring.key_hash(context.tenant_id, fresh.secret),
                key_version=self._parts.keyring.version,
                operations=operations,
                sessions=sessions,
                audience=frozenset(asked.audience),
                created_at=now,
                expires_at=expires_at,
                revoked_at=None,
            )
            await delegations.insert(tx, row, forget_before=now - REMEMBERED)
            # Behind that, which waits for who changes the principal: of a token's subject its delegations say nothing.
            await require_standing(tx, context, self._parts.clock)
            await self._record(tx, context, "delegation.create", fresh.key_id)
            return row

        return _out(await self._parts.database.work(context.tenant_scope, work), fresh.text)

    async def revoke(self, context: RequestContext, delegation_id: UUID) -> None:
        """Effective with the next request, for all below it as well. An operator revokes anybody's. Raises NotFound."""
        context.require(Operation.DELEGATE)

        async def work(tx: WorkerTransaction) -> None:
            chain = await delegations.chain(tx, delegation_id)
            if not chain or not _may_revoke(context, chain):
                raise NotFound
            await delegations.revoke(tx, chain[0], self._parts.clock())
            await self._record(tx, context, "delegation.revoke", delegation_id)

        await self._parts.database.work(context.tenant_scope, work)

    async def _above(self, context: RequestContext, tx: WorkerTransaction) -> DelegationRow | None:
        """The caller's own delegation, where it is a delegate. Raises NotFound where the credential has gone meanwhile."""
        own = _own_delegation(context)
        if own is not None:
            chain = await delegations.chain(tx, own)
            if not chain:
                raise NotFound
            return chain[0]
        if context.credential.kind is CredentialKind.KEY and not await directory.find_key(tx, UUID(context.credential.reference)):
            raise NotFound
        return None

    async def _record(self, tx: WorkerTransaction, context: RequestContext, action: str, delegation_id: UUID) -> None:
        await audit.record(tx, self._parts.new_id(), context.actor, action, "delegation", str(delegation_id))


def _end(context: RequestContext, now: datetime, seconds: int | None) -> datetime:
    own = context.credential.expires_at
    ends_at = now + (DEFAULT_LIFE if seconds is None else timedelta(seconds=seconds))
    if own is None or ends_at <= own:
        return ends_at
    if seconds is None:
        return own
    raise Forbidden("A delegate cannot outlive the credential that makes it.")


def _own_delegation(context: RequestContext) -> UUID | None:
    return UUID(context.credential.reference) if context.credential.kind is CredentialKind.DELEGATION else None


def _may_revoke(context: RequestContext, chain: list[DelegationRow]) -> bool:
    """One's own and, for a delegate, what is below it; never what reaches further than the caller does."""
    own, row = _own_delegation(context), chain[0]
    if own is not None and own not in {above.delegation_id for above in chain[1:]}:
        return False
    reaches = context.sessions is None or (row.sessions is not None and row.sessions <= context.sessions)
    return reaches and (row.principal_id == context.principal_id or context.is_operator)


def _out(row: DelegationRow, credential: str | None = None) -> DelegationOut:
    return DelegationOut(
        delegation_id=row.delegation_id,
        name=row.name,
        principal_id=row.principal_id,
        parent_delegation_id=row.parent_delegation_id,
        depth=row.depth,
        audience=cast(list[Literal["api", "mcp", "gateway"]], sorted(row.audience)),
        operations=sorted(row.operations),
        sessions=None if row.sessions is None else sorted(row.sessions),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        credential=credential,
    )
