"""Teams and memberships: made, listed, ended. A member that was taken out reads nothing of the team's with its next request."""

from __future__ import annotations

from uuid import UUID

from coatcheck.domain.errors import NotFound
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.pages import page_of
from coatcheck.memory.standing import require_standing_alone
from coatcheck.store import audit, principals, teams
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.teams import Membership, Team
from coatcheck_client.wire import MembershipCreate, MembershipOut, MembershipPage, TeamCreate, TeamOut, TeamPage


class Teams:
    """The use cases behind ``/v1/admin/teams`` and ``/v1/admin/memberships``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(self, context: RequestContext, page_size: int, page_token: str | None) -> TeamPage:
        context.require_for_tenant(Operation.PRINCIPALS)

        async def after(tx: WorkerTransaction, position: str | None, limit: int) -> list[Team]:
            return await teams.page(tx, UUID(position) if position else None, limit)

        rows, token = await page_of(self._parts, context, "teams", page_size, page_token, after, lambda row: str(row.team_id))
        return TeamPage(teams=[_team_out(row) for row in rows], next_page_token=token)

    async def create(self, context: RequestContext, asked: TeamCreate) -> TeamOut:
        context.require_for_tenant(Operation.PRINCIPALS)
        team = Team(self._parts.new_id(), asked.name, self._parts.clock(), 0)

        async def work(tx: WorkerTransaction) -> None:
            await teams.insert(tx, team.team_id, team.name, team.created_at)
            await self._record(tx, context, "team.create", "team", str(team.team_id))

        await self._parts.database.work(context.tenant_scope, work)
        return _team_out(team)

    async def delete(self, context: RequestContext, team_id: UUID) -> None:
        """Ends all memberships; what was the team's is its owners' alone from now on. Raises NotFound."""
        context.require_for_tenant(Operation.PRINCIPALS)

        async def work(tx: WorkerTransaction) -> None:
            if not await teams.delete(tx, team_id):
                raise NotFound
            await self._record(tx, context, "team.delete", "team", str(team_id))

        await self._parts.database.work(context.tenant_scope, work)

    async def memberships(
        self, context: RequestContext, team_id: UUID | None, page_size: int, page_token: str | None
    ) -> MembershipPage:
        """Who belongs to which team, or to this one. Raises NotFound for a team that is not the tenant's."""
        context.require_for_tenant(Operation.PRINCIPALS)

        async def after(tx: WorkerTransaction, position: str | None, limit: int) -> list[Membership]:
            team, _, principal = (position or "").partition("|")
            found = await teams.memberships(tx, team_id, (UUID(team), UUID(principal)) if position else None, limit)
            if not found and team_id is not None and not await teams.lock(tx, team_id):
                raise NotFound
            return found

        listing = f"memberships {team_id or ''}"
        rows, token = await page_of(
            self._parts, context, listing, page_size, page_token, after, lambda row: f"{row.team_id}|{row.principal_id}"
        )
        return MembershipPage(memberships=[_membership_out(row) for row in rows], next_page_token=token)

    async def join(self, context: RequestContext, asked: MembershipCreate) -> MembershipOut:
        """Making a member of a member changes nothing. Raises NotFound for a team or principal that is not the tenant's."""
        context.require_for_tenant(Operation.PRINCIPALS)
        made = Membership(asked.team_id, asked.principal_id, self._parts.clock())

        async def work(tx: WorkerTransaction) -> Membership:
            await require_standing_alone(tx, context, self._parts.clock)
            if not await principals.existing(tx, [made.principal_id]) or not await teams.lock(tx, made.team_id):
                raise NotFound
            standing = await teams.membership(tx, made.principal_id, made.team_id)
            if standing is not None:
                return standing
            await teams.join(tx, made.principal_id, made.team_id, made.created_at)
            await self._record(tx, context, "membership.create", "membership", f"{made.team_id}/{made.principal_id}")
            return made

        return _membership_out(await self._parts.database.work(context.tenant_scope, work))

    async def leave(self, context: RequestContext, team_id: UUID, principal_id: UUID) -> None:
        """Raises NotFound where there is no such membership."""
        context.require_for_tenant(Operation.PRINCIPALS)

        async def work(tx: WorkerTransaction) -> None:
            if not await teams.leave(tx, principal_id, team_id):
                raise NotFound
            await self._record(tx, context, "membership.delete", "membership", f"{team_id}/{principal_id}")

        await self._parts.database.work(context.tenant_scope, work)

    async def _record(self, tx: WorkerTransaction, context: RequestContext, action: str, kind: str, target_id: str) -> None:
        await audit.record(tx, self._parts.new_id(), context.actor, action, kind, target_id)


def _team_out(row: Team) -> TeamOut:
    return TeamOut(team_id=row.team_id, name=row.name, members=row.members, created_at=row.created_at)


def _membership_out(row: Membership) -> MembershipOut:
    return MembershipOut(team_id=row.team_id, principal_id=row.principal_id, created_at=row.created_at)
