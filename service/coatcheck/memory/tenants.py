"""The installation's tenants: which there are, and a new one with its first operator."""

from __future__ import annotations

from typing import Literal

from coatcheck.domain.errors import InvalidRequest
from coatcheck.identity.context import RequestContext
from coatcheck.identity.credentials import new_api_key
from coatcheck.identity.operations import OPERATOR, Operation
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.keys import add_operators_key
from coatcheck.memory.standing import require_standing_alone
from coatcheck.store import audit, directory
from coatcheck.store.directory import Tenant
from coatcheck_client.wire import TenantCreate, TenantOut, TenantPage


class Tenants:
    """The use cases behind ``/v1/admin/tenants``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(self, context: RequestContext) -> TenantPage:
        context.require_for_tenant(Operation.TENANTS)
        tenants = await self._parts.database.directory(directory.tenants)
        return TenantPage(tenants=[_tenant_out(tenant) for tenant in tenants])

    async def create(self, context: RequestContext, asked: TenantCreate) -> TenantOut:
        """A tenant with its first operator and that operator's key."""
        context.require_for_tenant(Operation.TENANTS)
        await self._parts.database.work(context.tenant_scope, lambda tx: require_standing_alone(tx, context, self._parts.clock))
        tenant, key = await create_tenant(self._parts, asked.name, OPERATOR)
        await self._parts.database.work(
            context.tenant_scope,
            lambda tx: audit.record(tx, self._parts.new_id(), context.actor, "tenant.create", "tenant", str(tenant.tenant_id)),
        )
        return _tenant_out(tenant, key)


async def create_tenant(parts: Collaborators, name: str, operations: frozenset[str]) -> tuple[Tenant, str]:
    """A tenant, its first principal and that one's key. Raises InvalidRequest when the name is taken."""
    tenant = Tenant(parts.new_id(), name, "active", parts.keyring.fingerprint(), parts.clock())
    if not await parts.database.directory(lambda tx: directory.insert_tenant(tx, tenant)):
        raise InvalidRequest("A tenant of this name exists.")
    fresh = new_api_key(tenant.tenant_id, parts.new_id())
    await parts.database.work(tenant_scope(tenant.tenant_id), lambda tx: add_operators_key(parts, tx, fresh, "first", operations))
    return tenant, fresh.text


def _tenant_out(tenant: Tenant, key: str | None = None) -> TenantOut:
    status: Literal["active", "suspended"] = "active" if tenant.status == "active" else "suspended"
    return TenantOut(tenant_id=tenant.tenant_id, name=tenant.name, status=status, created_at=tenant.created_at, key=key)
