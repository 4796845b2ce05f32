"""A claim that is made wrong, and rights that are taken back wrongly, are noticed: each mistake of statement_mutants is killed."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

import psycopg
import pytest
import pytest_asyncio
import sqlalchemy as sa

from coatcheck.domain.scopes import Scope
from coatcheck.store import directory, permission, principals, teams
from coatcheck.store.database import Database, ReadTransaction, WorkerTransaction
from coatcheck.store.principals import Principal
from tests.store.statement_mutants import Mistake, mistakes
from tests.tenants import EPOCH, Tenancy

ISSUER = "https://issuer.example/"
LEFT = """
    SELECT current_user::text, current_setting('app.tenant_id', true), current_setting('app.acl', true),
           current_setting('plan_cache_mode')
"""
CLAIMED = f"{LEFT}, current_setting('transaction_read_only')"
Said = tuple[str, ...]


@dataclass(frozen=True)
class Corner:
    """Two tenants: in the first somebody in a team, somebody of an issuer's, and somebody who is neither."""

    database: Database
    here: Tenancy
    there: Tenancy
    member: Scope
    subject: UUID
    other: Scope
    foreign: Scope
    team: UUID

    async def claimed(self) -> list[Said]:
        """What each kind of transaction says it may do, and what is left of that on its connection afterwards."""
        said: list[Said] = []
        connections: list[psycopg.AsyncConnection[tuple[str, ...]]] = []

        async def ask(tx: ReadTransaction | WorkerTransaction) -> None:
            said.append(tuple((await tx.connection.execute(sa.text(CLAIMED))).one()))
            connections.append((await tx.connection.get_raw_connection()).driver_connection)  # type: ignore[arg-type]

        async def left() -> None:
            """Before the next user's check-out resets it: that is a second wall, and is not to stand in for the first."""
            found = await (await connections[-1].execute(LEFT)).fetchone()
            await connections[-1].rollback()
            said.append(tuple(text or "" for text in found or ()))

        for transaction in (
            self.database.read(self.member, ask),
            self.database.read(self.member, ask, plan_once=True),
            self.database.write(self.member, ask),
            self.database.work(self.here.scope, ask),
        ):
            await transaction
            await left()
        return said

    def expected(self) -> list[Said]:
        tenant, keys = str(self.here.tenant_id), "{" + ",".join(self.member.acl) + "}"
        nothing: Said = ("coatcheck_login", "", "", "auto")
        return [
            ("coatcheck_app", tenant, keys, "auto", "on"), nothing,
            ("coatcheck_app", tenant, keys, "force_generic_plan", "on"), nothing,
            ("coatcheck_app", tenant, keys, "auto", "off"), nothing,
            ("coatcheck_worker", tenant, "{}", "auto", "off"), nothing,
        ]  # fmt: skip

    async def revisions(self) -> list[int]:
        """Of the first tenant, of its three principals, of the other tenant and of somebody there."""

        async def of(tx: WorkerTransaction, *who: UUID) -> list[int]:
            tenant, found = await directory.find_tenant(tx), [await principals.find(tx, one) for one in who]
            assert tenant is not None
            return [tenant.permission_revision, *(one.permission_revision for one in found if one is not None)]

        mine = (self.member.principal_id, self.subject, self.other.principal_id)
        here = await self.database.work(self.here.scope, lambda tx: of(tx, *mine))
        return here + await self.database.work(self.there.scope, lambda tx: of(tx, self.foreign.principal_id))

    async def raised(self) -> list[tuple[bool, ...]]:
        """Whose revision each change of rights raises."""
        changes = (
            lambda tx: permission.of_principal(tx, self.other.principal_id),
            lambda tx: permission.of_team(tx, self.team),
            lambda tx: permission.of_issuer(tx, ISSUER),
        )
        found = []
        for change in changes:
            before = await self.revisions()
            await self.database.work(self.here.scope, change)
            found.append(tuple(new > old for old, new in zip(before, await self.revisions(), strict=True)))
        return found

    async def stands(self) -> bool:
        concerned = [
            (True, False, False, True, False, False),
            (True, True, False, False, False, False),
            (True, False, True, False, False, False),
        ]
        return await self.claimed() == self.expected() and await self.raised() == concerned


@pytest_asyncio.fixture
async def corner(database: Database, tenant: Tenancy, other_tenant: Tenancy) -> Corner:
    team, another, subject = uuid4(), uuid4(), uuid4()
    member, other, foreign = await tenant.principal(team), await tenant.principal(another), await other_tenant.principal(team)

    async def add(tx: WorkerTransaction) -> None:
        assert await principals.add(tx, Principal(subject, "of the issuer", "member", "active", ISSUER, "s", EPOCH))
        await teams.insert(tx, uuid4(), "nobody's", EPOCH)

    await database.work(tenant.scope, add)
    return Corner(database, tenant, other_tenant, member, subject, other, foreign, team)


async def test_as_they_stand_claims_are_right_and_rights_are_taken_back_from_whom_it_concerns(corner: Corner) -> None:
    assert await corner.claimed() == corner.expected()
    assert await corner.stands()
    assert len(mistakes()) >= 20


@pytest.mark.parametrize("mistake", mistakes(), ids=str)
async def test_T15_a_claim_made_wrong_is_noticed(corner: Corner, mistake: Mistake) -> None:
    with mistake.made():
        try:
            noticed = not await corner.stands()
        except Exception:
            noticed = True  # what fails gives nothing away either

    assert noticed
