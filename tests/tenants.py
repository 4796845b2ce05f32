"""A tenant with principals, and the scopes that identity would make for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

from coatcheck.domain.scopes import PUBLIC, Scope, TenantScope, principal_key, team_key
from coatcheck.store import directory, principals
from coatcheck.store import teams as store_teams
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.directory import Tenant

EPOCH = datetime(2026, 11, 29, 20, 15, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Tenancy:
    """A tenant that exists. ``scope`` is its worker's."""

    database: Database
    scope: TenantScope

    @property
    def tenant_id(self) -> UUID:
        return self.scope.tenant_id

    async def principal(self, *teams: UUID) -> Scope:
        """A new principal, and what it may read: its own, its teams', and what is public."""
        principal_id = uuid4()

        async def work(tx: WorkerTransaction) -> None:
            await principals.insert(tx, principal_id, "somebody")
            for team_id in teams:
                await store_teams.insert(tx, team_id, "a team", EPOCH)
                await store_teams.join(tx, principal_id, team_id, EPOCH)

        await self.database.work(self.scope, work)
        keys = (principal_key(principal_id), *(team_key(team_id) for team_id in teams), PUBLIC)
        return Scope(self.tenant_id, principal_id, keys)


async def new_tenancy(database: Database) -> Tenancy:
    """A tenant with a name of its own."""
    tenant_id = uuid4()
    row = Tenant(tenant_id, f"tenant {tenant_id}", "active", "0" * 16, EPOCH)
    await database.directory(lambda tx: directory.insert_tenant(tx, row))
    return Tenancy(database, TenantScope(tenant_id))
