"""Whether a caller's rights still stand in the very transaction that hands some of them on.

A request was let in before its body had arrived, and what it makes would outlive a credential that was revoked meanwhile. So
whoever makes keys, delegations, principals, memberships, issuers or tenants, or changes a session's readers, asks again, in turn
with whoever takes rights away.
"""

from __future__ import annotations

from coatcheck.domain.errors import Unauthenticated
from coatcheck.domain.ports import Clock
from coatcheck.identity.context import RequestContext
from coatcheck.identity.standing import context_of
from coatcheck.store import credentials, permission
from coatcheck.store.database import WorkerTransaction


async def require_standing_alone(tx: WorkerTransaction, context: RequestContext, clock: Clock) -> None:
    """As ``require_standing``; and until the transaction ends nobody's rights change but by it. To be asked before all else."""
    await permission.lock(tx)
    await require_standing(tx, context, clock)


async def require_standing(tx: WorkerTransaction, context: RequestContext, clock: Clock) -> None:
    """Raises Unauthenticated where any of the rights that the request was let in with are gone. To be asked after any waiting."""
    if context.credential.is_over(clock()):  # no revision rises for that
        raise Unauthenticated
    if await permission.current(tx) == context.permission_revision:
        return
    rights = await credentials.find_rights(tx, context.credential)
    if rights is None or not context_of(context.credential, rights, clock()).covers(context):
        raise Unauthenticated
