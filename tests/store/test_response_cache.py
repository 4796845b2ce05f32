"""The cache's rows under row security: whatever a use case forgets, the database does not."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from coatcheck.domain.errors import CoatcheckError
from coatcheck.domain.scopes import PUBLIC, Scope, principal_key, team_key
from coatcheck.domain.sessions import Session
from coatcheck.store import sessions
from coatcheck.store.database import ReadTransaction, WriteTransaction
from tests.store.made import session_of
from tests.tenants import EPOCH, Tenancy

DIGESTS = (
    "scope",
    "sharing",
    "conversation",
    "permission",
    "sources",
    "model",
    "instructions",
    "tools",
    "settings",
    "schema",
    "prompt",
)
INSERT = sa.text(
    "INSERT INTO cache_entries (tenant_id, entry_id, principal_id, acl, session_id, answer, created_at, expires_at,"
    f" {', '.join(DIGESTS)}) VALUES (:tenant, :entry, :principal, :acl, :session, 'an answer', :now, :later,"
    f" {', '.join('repeat(chr(48), 64)' for _ in DIGESTS)})"
)


async def put(tenancy: Tenancy, scope: Scope, *, acl: list[str], session: UUID | None = None, **forged: object) -> UUID:
    """An entry written as this principal, whatever it claims."""
    entry_id = uuid4()
    row = {"tenant": scope.tenant_id, "entry": entry_id, "principal": scope.principal_id, "acl": acl, "session": session}
    times = {"now": EPOCH, "later": EPOCH + timedelta(days=9_000)}

    async def work(tx: WriteTransaction) -> None:
        await tx.connection.execute(INSERT, {**row, **times, **forged})

    await tenancy.database.write(scope, work)
    return entry_id


async def kept_session(tenant: Tenancy, owner: Scope) -> Session:
    session = session_of(owner)
    await tenant.database.write(owner, lambda tx: sessions.insert(tx, session))
    return session


async def seen(tenant: Tenancy, scope: Scope) -> set[UUID]:
    """All that a forgotten condition could reach."""

    async def work(tx: ReadTransaction) -> set[UUID]:
        return set(await tx.connection.scalars(sa.text("SELECT entry_id FROM cache_entries")))

    return await tenant.database.read(scope, work)


async def test_an_entry_is_seen_by_who_holds_its_key(tenant: Tenancy, other_tenant: Tenancy) -> None:
    team = uuid4()
    alice, carol, bob = await tenant.principal(team), await tenant.principal(team), await tenant.principal()
    foreign = await other_tenant.principal()

    own = await put(tenant, alice, acl=[principal_key(alice.principal_id)])
    teams = await put(tenant, alice, acl=[team_key(team)])
    public = await put(tenant, alice, acl=[PUBLIC])

    assert await seen(tenant, alice) == {own, teams, public}
    assert await seen(tenant, carol) == {teams, public}
    assert await seen(tenant, bob) == {public}
    assert await seen(other_tenant, foreign) == set()


async def test_nobody_writes_for_another_principal_team_or_tenant(tenant: Tenancy, other_tenant: Tenancy) -> None:
    alice, bob = await tenant.principal(), await tenant.principal()
    foreign = await other_tenant.principal()
    own = principal_key(bob.principal_id)

    for acl, forged in (
        ([principal_key(alice.principal_id)], {}),
        ([team_key(uuid4())], {}),
        ([own, principal_key(alice.principal_id)], {}),
        ([own, PUBLIC], {}),
        ([], {}),
        ([own], {"principal": alice.principal_id}),
        ([own], {"tenant": foreign.tenant_id}),
    ):
        with pytest.raises(CoatcheckError, match="42501"):
            await put(tenant, bob, acl=acl, **forged)
    assert await seen(tenant, bob) == set()


async def test_an_entry_of_a_session_is_seen_while_the_session_is(tenant: Tenancy) -> None:
    alice, bob = await tenant.principal(), await tenant.principal()
    session = await kept_session(tenant, alice)
    entry = await put(tenant, alice, acl=[PUBLIC], session=session.session_id)

    assert await seen(tenant, alice) == {entry}
    assert await seen(tenant, bob) == set()

    await tenant.database.work(tenant.scope, lambda tx: sessions.mark_erased(tx, session.session_id, EPOCH))

    assert await seen(tenant, alice) == set()


async def test_nobody_ties_an_answer_to_a_session_that_it_may_not_read(tenant: Tenancy) -> None:
    alice, bob = await tenant.principal(), await tenant.principal()
    session = await kept_session(tenant, alice)

    with pytest.raises(CoatcheckError, match="42501"):
        await put(tenant, bob, acl=[principal_key(bob.principal_id)], session=session.session_id)


async def test_nobody_ties_somebody_elses_answer_to_anything(tenant: Tenancy) -> None:
    alice, bob = await tenant.principal(), await tenant.principal()
    entry = await put(tenant, alice, acl=[PUBLIC])

    async def tie(tx: WriteTransaction) -> None:
        await tx.connection.execute(
            sa.text("INSERT INTO cache_ties (tenant_id, tag, entry_id) VALUES (:tenant, 'tag', :entry)"),
            {"tenant": tenant.tenant_id, "entry": entry},
        )

    with pytest.raises(CoatcheckError, match="42501"):
        await tenant.database.write(bob, tie)
    await tenant.database.write(alice, tie)


@pytest.mark.parametrize(
    "statement", ["UPDATE cache_entries SET answer = 'poison'", "DELETE FROM cache_entries", "SELECT * FROM cache_ties"]
)
async def test_a_request_may_only_find_and_add(tenant: Tenancy, statement: str) -> None:
    alice = await tenant.principal()

    async def work(tx: WriteTransaction) -> None:
        await tx.connection.execute(sa.text(statement))

    with pytest.raises(CoatcheckError, match="42501"):
        await tenant.database.write(alice, work)
