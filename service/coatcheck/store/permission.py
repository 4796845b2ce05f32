"""Permission revisions: the tenant's rises with every change of anybody's rights, a principal's with those that concern it.

The tenant's row comes first, always: of two changes at once the second waits there, and sees what the first one did.
"""

from __future__ import annotations

from uuid import UUID

import sqlalchemy as sa

from coatcheck.store.database import WorkerTransaction

_CURRENT = sa.text("SELECT permission_revision FROM tenants WHERE tenant_id = :tenant AND status = 'active'")

_LOCK = sa.text("SELECT FROM tenants WHERE tenant_id = :tenant FOR NO KEY UPDATE")

_OF_TENANT = sa.text("UPDATE tenants SET permission_revision = permission_revision + 1 WHERE tenant_id = :tenant")

_RAISE = "UPDATE principals SET permission_revision = permission_revision + 1 WHERE tenant_id = :tenant"

_OF_PRINCIPAL = sa.text(f"{_RAISE} AND principal_id = :principal")

_OF_MEMBERS = sa.text(
    f"{_RAISE} AND principal_id IN (SELECT principal_id FROM memberships WHERE tenant_id = :tenant AND team_id = :team)"
)

_OF_SUBJECTS = sa.text(f"{_RAISE} AND issuer = :issuer")


async def lock(tx: WorkerTransaction) -> None:
    """Until this transaction ends, nobody else raises the tenant's."""
    await tx.connection.execute(_LOCK, {"tenant": tx.scope.tenant_id})


async def current(tx: WorkerTransaction) -> int | None:
    """The tenant's; None of one that is no more."""
    revision: int | None = await tx.connection.scalar(_CURRENT, {"tenant": tx.scope.tenant_id})
    return revision


async def of_principal(tx: WorkerTransaction, principal_id: UUID) -> None:
    """What was remembered about this principal's rights is old from this commit on."""
    await tx.connection.execute(_OF_TENANT, {"tenant": tx.scope.tenant_id})
    await tx.connection.execute(_OF_PRINCIPAL, {"tenant": tx.scope.tenant_id, "principal": principal_id})


async def of_team(tx: WorkerTransaction, team_id: UUID) -> None:
    """The same, of everybody who is in the team now."""
    await tx.connection.execute(_OF_TENANT, {"tenant": tx.scope.tenant_id})
    await tx.connection.execute(_OF_MEMBERS, {"tenant": tx.scope.tenant_id, "team": team_id})


async def of_issuer(tx: WorkerTransaction, issuer: str) -> None:
    """The same, of everybody for whom the issuer speaks."""
    await tx.connection.execute(_OF_TENANT, {"tenant": tx.scope.tenant_id})
    await tx.connection.execute(_OF_SUBJECTS, {"tenant": tx.scope.tenant_id, "issuer": issuer})
