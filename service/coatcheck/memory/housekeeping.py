"""What the worker does for every tenant once in a while: retention, a short ledger, and the end of those that go."""

from __future__ import annotations

import asyncio

import structlog

from coatcheck.domain.errors import CoatcheckError
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.offboarding import Offboarding
from coatcheck.memory.retention import Retention
from coatcheck.store import directory, limits
from coatcheck.store.offboarding import ERASING

log = structlog.get_logger(__name__)


class Housekeeper:
    """Tenant after tenant, a bounded piece of work for each; one tenant's trouble is that tenant's alone."""

    def __init__(self, parts: Collaborators, retention: Retention, offboarding: Offboarding) -> None:
        self._parts = parts
        self._retention = retention
        self._offboarding = offboarding

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self.walk()
            except CoatcheckError as error:
                log.warning("housekeeping.failed", problem=error.slug)
            await asyncio.sleep(self._parts.settings.housekeeping_interval_s)

    async def walk(self) -> None:
        """Raises StoreUnavailable when the tenants cannot be listed."""
        for tenant in await self._parts.database.directory(directory.tenants):
            try:
                if tenant.status == ERASING:
                    await self._offboarding.finish(tenant.tenant_id)
                else:
                    await self._one(tenant_scope(tenant.tenant_id))
            except CoatcheckError as error:
                log.warning("housekeeping.failed", problem=error.slug)

    async def _one(self, scope: TenantScope) -> None:
        await self._retention.apply(scope)
        await self._parts.database.work(scope, limits.fold)
