"""Look at a tenant's limits and what it has stored; change the limits."""

from __future__ import annotations

import dataclasses
from uuid import UUID

from coatcheck.domain.errors import NotFound
from coatcheck.domain.limits import StoredUsage, TenantLimits
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.limits import default_limits
from coatcheck.store import audit, directory, limits
from coatcheck.store.database import WorkerTransaction
from coatcheck_client.wire import TenantLimits as TenantLimitsIn
from coatcheck_client.wire import TenantLimitsOut, UsageOut


class TenantLimitsAdmin:
    """The use cases behind ``/v1/admin/tenants/{id}/limits``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def one(self, context: RequestContext, tenant_id: UUID) -> TenantLimitsOut:
        """Raises NotFound for a tenant that does not exist."""
        context.require_for_tenant(Operation.TENANTS)
        return await self._parts.database.work(tenant_scope(tenant_id), self._out)

    async def change(self, context: RequestContext, tenant_id: UUID, asked: TenantLimitsIn) -> TenantLimitsOut:
        """Sets all of them. Counts at once in this process, within seconds in others. Raises NotFound."""
        context.require_for_tenant(Operation.TENANTS)
        wanted = TenantLimits(**asked.model_dump())

        async def work(tx: WorkerTransaction) -> TenantLimitsOut:
            if await directory.find_tenant(tx) is None:
                raise NotFound
            await limits.change(tx, wanted, self._parts.clock())
            return await self._out(tx)

        changed = await self._parts.database.work(tenant_scope(tenant_id), work)
        await self._parts.database.work(
            context.tenant_scope,
            lambda tx: audit.record(tx, self._parts.new_id(), context.actor, "tenant.limits", "tenant", str(tenant_id)),
        )
        self._parts.limiter.forget(tenant_id)
        return changed

    async def _out(self, tx: WorkerTransaction) -> TenantLimitsOut:
        if await directory.find_tenant(tx) is None:
            raise NotFound
        own, stored = await limits.find(tx), await limits.stored(tx)
        effective = own.over(default_limits(self._parts.settings))
        return TenantLimitsOut(tenant_id=tx.scope.tenant_id, own=_wire(own), effective=_wire(effective), stored=_usage(stored))


def _wire(limits: TenantLimits) -> TenantLimitsIn:
    return TenantLimitsIn(**dataclasses.asdict(limits))


def _usage(stored: StoredUsage) -> UsageOut:
    return UsageOut(segments=stored.segments, bytes=stored.bytes)
