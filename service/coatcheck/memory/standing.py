"""Whether a caller's rights still stand in the very transaction that hands some of them on.

A request was let in before its body had arrived, and what it makes would outlive a credential that was revoked meanwhile. So
whoever makes keys, principals, memberships, issuers or tenants, or changes a session's readers, asks again, in turn with whoever
takes rights away. A new delegation need not: each use of one looks at all that it hangs on.
"""

from __future__ import annotations

from uuid import UUID

from coatcheck.domain.errors import Unauthenticated
from coatcheck.identity.context import CredentialKind, RequestContext
from coatcheck.identity.operations import Role
from coatcheck.store import delegations, directory, issuers, permission, principals
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.delegations import DelegationRow
from coatcheck.store.directory import ApiKeyRow
from coatcheck.store.principals import Principal

ACTIVE = "active"


async def require_standing_alone(tx: WorkerTransaction, context: RequestContext) -> None:
    """As ``require_standing``; and until the transaction ends nobody's rights change but by it. To be asked before all else."""
    await permission.lock(tx)
    await require_standing(tx, context)


async def require_standing(tx: WorkerTransaction, context: RequestContext) -> None:
    """Raises Unauthenticated where any of the rights that the request was let in with are gone. To be asked after any waiting."""
    if await permission.current(tx) == context.permission_revision:
        return
    tenant = await directory.find_tenant(tx)
    principal = await principals.find(tx, context.principal_id)
    if tenant is None or tenant.status != ACTIVE or principal is None or principal.status != ACTIVE:
        raise Unauthenticated
    if not principal.teams >= context.teams or not await _credential_stands(tx, context, principal):
        raise Unauthenticated


async def _credential_stands(tx: WorkerTransaction, context: RequestContext, principal: Principal) -> bool:
    kind, reference, role = context.credential.kind, context.credential.reference, Role(principal.role)
    if kind is CredentialKind.TOKEN:
        speaks = principal.issuer == reference and await issuers.speaks_for(tx, reference)
        return speaks and role.grants >= context.operations
    chain = await delegations.chain(tx, UUID(reference)) if kind is CredentialKind.DELEGATION else []
    top = chain[-1] if chain else None
    key_id = UUID(reference) if kind is CredentialKind.KEY else top.parent_key_id if top is not None else None
    key = await directory.find_key(tx, key_id) if key_id is not None else None
    if key is None and (top is None or not await issuers.speaks_for(tx, top.parent_issuer or "")):
        return False
    above: list[DelegationRow | ApiKeyRow] = [*chain, key] if key is not None else [*chain]
    return all(
        one.revoked_at is None
        and one.principal_id == principal.principal_id
        and one.operations & role.ceiling >= context.operations
        for one in above
    )
