"""Whether rights still stand in the transaction that hands them on: whatever is taken away, and which credentials lose by it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
import sqlalchemy as sa

from coatcheck.domain.errors import Unauthenticated
from coatcheck.identity.context import LEEWAY, Credential, CredentialKind, RequestContext
from coatcheck.identity.doors import Door
from coatcheck.identity.operations import MEMBER, OPERATOR
from coatcheck.identity.standing import context_of
from coatcheck.memory.standing import require_standing, require_standing_alone
from coatcheck.store import credentials, delegations, directory, issuers, offboarding, permission, principals, teams
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.delegations import DelegationRow
from coatcheck.store.directory import ApiKeyRow
from coatcheck.store.issuers import IssuerRow
from coatcheck.store.principals import Principal
from tests.tenants import EPOCH, Tenancy

Change = Callable[["House", WorkerTransaction], Awaitable[object]]
SESSIONS = frozenset({UUID(int=5), UUID(int=6)})
ENDS = EPOCH + timedelta(hours=1)


@dataclass(frozen=True)
class House:
    """One operator with a key, the key's agent, that one's helper, a token, and the token's agent. By name: what each has shown."""

    database: Database
    tenant: Tenancy
    operator: Principal
    team: UUID
    issuer: str
    shown: dict[str, Credential]

    async def do(self, change: Change) -> None:
        await self.database.work(self.tenant.scope, lambda tx: change(self, tx))

    async def let_in(self, name: str) -> RequestContext:
        """As authentication does, once what was shown is proven."""
        rights = await self.database.work(self.tenant.scope, lambda tx: credentials.find_rights(tx, self.shown[name]))
        assert rights is not None
        return context_of(self.shown[name], rights, EPOCH)

    async def stands(self, context: RequestContext, now: datetime = EPOCH) -> bool:
        try:
            await self.database.work(self.tenant.scope, lambda tx: require_standing(tx, context, lambda: now))
        except Unauthenticated:
            return False
        return True


def delegation(principal_id: UUID, depth: int, key: UUID | None, parent: UUID | None, issuer: str | None) -> DelegationRow:
    return DelegationRow(
        uuid4(), principal_id, key, parent, issuer, depth, "an agent", b"\0hash", 1, MEMBER, SESSIONS,
        frozenset({Door.API, Door.MCP}), EPOCH, ENDS, None,
    )  # fmt: skip


@pytest_asyncio.fixture
async def house(database: Database, tenant: Tenancy) -> House:
    issuer, team, key_id = f"https://{uuid4()}.example/", uuid4(), uuid4()
    operator = Principal(uuid4(), "boss", "operator", "active", issuer, "boss", EPOCH)
    agent = delegation(operator.principal_id, 1, key_id, None, None)
    helper = delegation(operator.principal_id, 2, None, agent.delegation_id, None)
    tokens_agent = delegation(operator.principal_id, 1, None, None, issuer)

    async def build(one: House, tx: WorkerTransaction) -> None:
        await issuers.insert(tx, IssuerRow(issuer, tenant.tenant_id, "https://keys.example/", "us", EPOCH))
        await principals.add(tx, operator)
        await teams.insert(tx, team, "a team", EPOCH)
        await teams.join(tx, operator.principal_id, team, EPOCH)
        row = ApiKeyRow(key_id, operator.principal_id, "a key", b"\0hash", 1, OPERATOR, SESSIONS, EPOCH, ENDS, None)
        await directory.insert_key(tx, row)
        for made in (agent, helper, tokens_agent):
            await delegations.insert(tx, made, forget_before=EPOCH)

    shown = {
        "key": Credential(CredentialKind.KEY, str(key_id), ENDS),
        "agent": Credential(CredentialKind.DELEGATION, str(agent.delegation_id), ENDS),
        "helper": Credential(CredentialKind.DELEGATION, str(helper.delegation_id), ENDS),
        "token": Credential(CredentialKind.TOKEN, issuer, ENDS, Door.API, "boss", frozenset({"keys", "read", "openid"})),
        "token's agent": Credential(CredentialKind.DELEGATION, str(tokens_agent.delegation_id), ENDS),
    }
    one = House(database, tenant, operator, team, issuer, shown)
    await one.do(build)
    return one


def principal(**changes: object) -> Change:
    return lambda house, tx: principals.update(tx, dataclasses.replace(house.operator, **changes))  # type: ignore[arg-type]


def row(name: str, assignment: str) -> Change:
    """What no use case does today: the stored row of a key or delegation is changed."""

    async def change(house: House, tx: WorkerTransaction) -> None:
        kind = "api_keys" if name == "key" else "delegations"
        column = "key_id" if name == "key" else "delegation_id"
        statement = sa.text(f"UPDATE {kind} SET {assignment} WHERE tenant_id = :tenant AND {column} = :one")
        await tx.connection.execute(statement, {"tenant": tx.scope.tenant_id, "one": house.shown[name].reference})
        await permission.of_principal(tx, house.operator.principal_id)

    return change


async def issuer_gone(house: House, tx: WorkerTransaction) -> None:
    assert await issuers.delete(tx, house.issuer)
    await permission.of_issuer(tx, house.issuer)


def somebody_elses(name: str) -> Change:
    async def change(house: House, tx: WorkerTransaction) -> None:
        await principals.add(tx, Principal(UUID(int=8), "other", "operator", "active", None, None, EPOCH))
        await row(name, f"principal_id = '{UUID(int=8)}'")(house, tx)

    return change


async def another_team(house: House, tx: WorkerTransaction) -> None:
    await teams.insert(tx, UUID(int=9), "another", EPOCH)
    await teams.join(tx, house.operator.principal_id, UUID(int=9), EPOCH)


async def suspended(_: House, tx: WorkerTransaction) -> None:
    await tx.connection.execute(
        sa.text("UPDATE tenants SET status = 'suspended', permission_revision = permission_revision + 1 WHERE tenant_id = :tenant"),
        {"tenant": tx.scope.tenant_id},
    )


EVERYBODY = {"key", "agent", "helper", "token", "token's agent"}
BELOW = {"key", "agent", "helper"}
LOST_BY: dict[str, tuple[Change, set[str]]] = {
    "the key is revoked": (lambda house, tx: directory.revoke_key(tx, UUID(house.shown["key"].reference), EPOCH), BELOW),
    "the key is kept to a session": (row("key", f"sessions = ARRAY['{UUID(int=5)}'::uuid]"), BELOW),
    "the key loses an operation": (row("key", "operations = array_remove(operations, 'read')"), BELOW),
    "the key ends sooner": (row("key", f"expires_at = '{EPOCH.isoformat()}'"), BELOW),
    "the agent is revoked": (row("agent", "revoked_at = now()"), {"agent", "helper"}),
    "the agent is kept to a session": (row("agent", f"sessions = ARRAY['{UUID(int=5)}'::uuid]"), {"agent", "helper"}),
    "the agent loses an operation": (row("agent", "operations = array_remove(operations, 'read')"), {"agent", "helper"}),
    "the agent ends sooner": (row("agent", f"expires_at = '{EPOCH.isoformat()}'"), {"agent", "helper"}),
    "the agent loses its door": (row("agent", "audience = ARRAY['mcp']"), {"agent", "helper"}),
    "the key is somebody else's": (somebody_elses("key"), BELOW),
    "the agent is somebody else's": (somebody_elses("agent"), {"agent", "helper"}),
    "the helper is somebody else's": (somebody_elses("helper"), {"helper"}),
    "the helper is revoked": (row("helper", "revoked_at = now()"), {"helper"}),
    "the role is a member's": (principal(role="member"), {"key", "token"}),
    "the principal is deactivated": (principal(status="inactive"), EVERYBODY),
    "out of its team": (lambda house, tx: teams.leave(tx, house.operator.principal_id, house.team), EVERYBODY),
    "another subject": (principal(subject="another"), {"token"}),
    "no subject": (principal(issuer=None, subject=None), {"token"}),
    "what tokens made is revoked": (
        lambda house, tx: delegations.revoke_of_tokens(tx, house.operator.principal_id, EPOCH), {"token's agent"},
    ),
    "the issuer is gone": (issuer_gone, {"token", "token's agent"}),
    "the tenant is suspended": (suspended, EVERYBODY),
    "the tenant's end has begun": (lambda house, tx: offboarding.begin(tx, tx.scope.tenant_id, None), EVERYBODY),
    "another name": (principal(name="another"), set()),
    "another team": (another_team, set()),
    "the key reaches every session": (row("key", "sessions = NULL, expires_at = NULL"), set()),
    "the agent reaches every session": (row("agent", "sessions = NULL"), set()),
}  # fmt: skip


@pytest.mark.parametrize("change", LOST_BY)
async def test_who_has_lost_any_right_hands_none_on_and_nobody_else_is_stopped(house: House, change: str) -> None:
    contexts = {name: await house.let_in(name) for name in house.shown}
    how, expected = LOST_BY[change]

    await house.do(how)

    assert {name for name, context in contexts.items() if not await house.stands(context)} == expected


async def test_a_credential_that_ends_while_its_request_lasts_hands_nothing_on(house: House) -> None:
    """No row changes for that."""
    contexts = {name: await house.let_in(name) for name in house.shown}

    async def standing(at: datetime) -> set[str]:
        return {name for name, context in contexts.items() if await house.stands(context, at)}

    assert await standing(ENDS - timedelta(seconds=1)) == EVERYBODY
    assert await standing(ENDS) == await standing(ENDS + LEEWAY - timedelta(seconds=1)) == {"token"}
    assert await standing(ENDS + LEEWAY) == set()


async def test_where_no_revision_rose_nothing_else_is_asked(house: House) -> None:
    """The key is gone here without one, as nothing that the service does takes it away."""
    context = await house.let_in("key")

    async def without_a_trace(house: House, tx: WorkerTransaction) -> None:
        statement = sa.text("DELETE FROM api_keys WHERE tenant_id = :tenant AND key_id = :key")
        await tx.connection.execute(statement, {"tenant": tx.scope.tenant_id, "key": house.shown["key"].reference})

    await house.do(without_a_trace)

    assert await house.stands(context)


async def test_what_is_there_no_more_stands_for_nothing(house: House) -> None:
    context = await house.let_in("key")

    for kind in CredentialKind:
        gone = dataclasses.replace(context, credential=Credential(kind, str(uuid4()), None), permission_revision=-1)
        assert not await house.stands(gone)


async def stopped_at(task: asyncio.Task[object], reached: asyncio.Event) -> bool:
    """Whether it waits for somebody, here for as long as a transaction takes many times over."""
    await asyncio.wait({task}, timeout=0.2)
    return not reached.is_set()


async def test_who_takes_rights_away_waits_for_who_hands_them_on(house: House) -> None:
    context, asked, taken, go_on = await house.let_in("key"), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hands_on(_: House, tx: WorkerTransaction) -> None:
        await require_standing_alone(tx, context, lambda: EPOCH)
        asked.set()
        await go_on.wait()

    async def takes_away(house: House, tx: WorkerTransaction) -> None:
        await permission.of_principal(tx, house.operator.principal_id)
        taken.set()

    first = asyncio.create_task(house.do(hands_on))
    await asyncio.wait_for(asked.wait(), 10)
    second = asyncio.create_task(house.do(takes_away))

    assert await stopped_at(second, taken)
    go_on.set()
    await asyncio.gather(first, second)


async def test_who_hands_rights_on_waits_for_who_takes_them_away_and_sees_that(house: House) -> None:
    context, taken, asked, go_on = await house.let_in("key"), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def takes_away(house: House, tx: WorkerTransaction) -> None:
        await principal(status="inactive")(house, tx)
        taken.set()
        await go_on.wait()

    async def hands_on(_: House, tx: WorkerTransaction) -> None:
        try:
            await require_standing_alone(tx, context, lambda: EPOCH)
        finally:
            asked.set()

    first = asyncio.create_task(house.do(takes_away))
    await asyncio.wait_for(taken.wait(), 10)
    second = asyncio.create_task(house.do(hands_on))

    assert await stopped_at(second, asked)
    go_on.set()
    await first
    with pytest.raises(Unauthenticated):
        await second
