"""Transactions: their scope, their second attempts, and what leaves the store when one fails."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa

from coatcheck.domain.errors import CoatcheckError, StoreUnavailable
from coatcheck.domain.scopes import TenantScope
from coatcheck.store import directory, principals, sessions
from coatcheck.store.database import Database, ReadTransaction, WorkerTransaction, WriteTransaction
from tests.postgres import Postgres
from tests.store.made import session_of, store_session
from tests.tenants import Tenancy, new_tenancy

WHO = sa.text("SELECT current_user, current_setting('app.tenant_id'), current_setting('app.acl')")


async def test_every_kind_of_transaction_claims_its_own_role_tenant_and_keys(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal(uuid4())

    async def who(tx: ReadTransaction | WorkerTransaction) -> tuple[str, str, str]:
        user, tenant_id, acl = (await tx.connection.execute(WHO)).one()
        return user, tenant_id, acl

    keys = "{" + ",".join(scope.acl) + "}"
    assert await database.read(scope, who) == ("coatcheck_app", str(tenant.tenant_id), keys)
    assert await database.write(scope, who) == ("coatcheck_app", str(tenant.tenant_id), keys)
    assert await database.work(tenant.scope, who) == ("coatcheck_worker", str(tenant.tenant_id), "{}")


async def test_a_read_transaction_writes_nothing(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = session_of(scope)

    with pytest.raises(CoatcheckError, match="25006"):
        await database.read(scope, lambda tx: sessions.insert(tx, session))  # type: ignore[arg-type]

    assert await database.write(scope, lambda tx: sessions.insert(tx, session))


async def test_work_that_raises_is_rolled_back_and_its_error_passes_unchanged(database: Database, tenant: Tenancy) -> None:
    scope = await tenant.principal()
    session = session_of(scope)

    class Refused(Exception):
        pass

    async def work(tx: WriteTransaction) -> None:
        await sessions.insert(tx, session)
        raise Refused

    with pytest.raises(Refused):
        await database.write(scope, work)

    assert await database.read(scope, lambda tx: sessions.find(tx, session.session_id)) is None


async def test_both_sides_of_a_deadlock_succeed(database: Database, tenant: Tenancy) -> None:
    first, second = uuid4(), uuid4()
    for principal_id in (first, second):
        await database.work(tenant.scope, lambda tx, id=principal_id: principals.insert(tx, id, "locked"))  # type: ignore[misc]
    attempts = 0
    both_hold_one = asyncio.Barrier(2)
    rename = sa.text("UPDATE principals SET name = name || '!' WHERE principal_id = :id")

    async def work(tx: WorkerTransaction, order: tuple[object, object]) -> None:
        nonlocal attempts
        attempts += 1
        await tx.connection.execute(rename, {"id": order[0]})
        if attempts <= 2:
            await both_hold_one.wait()
        await tx.connection.execute(rename, {"id": order[1]})

    await asyncio.gather(
        database.work(tenant.scope, lambda tx: work(tx, (first, second))),
        database.work(tenant.scope, lambda tx: work(tx, (second, first))),
    )

    assert attempts == 3
    names = [await database.work(tenant.scope, lambda tx, id=id: principals.find(tx, id)) for id in (first, second)]  # type: ignore[misc]
    assert [row and row.name for row in names] == ["locked!!", "locked!!"]


@pytest.mark.parametrize("state", ["40P01", "40001", "23503"])
async def test_a_lost_race_is_tried_again_whole_and_then_given_up(database: Database, tenant: Tenancy, state: str) -> None:
    attempts = 0
    lose = sa.text(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}'; END $$")

    async def loses(tx: WorkerTransaction, times: int) -> int:
        nonlocal attempts
        attempts += 1
        if attempts <= times:
            await tx.connection.execute(lose)
        return attempts

    assert await database.work(tenant.scope, lambda tx: loses(tx, 3)) == 4

    attempts = 0
    with pytest.raises(StoreUnavailable):
        await database.work(tenant.scope, lambda tx: loses(tx, 99))
    assert attempts == 4


async def test_other_failures_are_not_tried_again_and_repeat_no_value(database: Database, tenant: Tenancy) -> None:
    attempts = 0

    async def work(tx: WorkerTransaction) -> None:
        nonlocal attempts
        attempts += 1
        name = {"name": "what nobody may read"}
        await tx.connection.execute(sa.text("INSERT INTO principals (tenant_id, name) VALUES (NULL, :name)"), name)

    with pytest.raises(CoatcheckError) as caught:
        await database.work(tenant.scope, work)

    assert attempts == 1
    assert caught.value.status == 500
    assert "nobody" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_statement_that_takes_too_long_is_unavailable(database_url: str, tenant: Tenancy) -> None:
    impatient = await Database.connect(database_url, statement_timeout_s=1)

    with pytest.raises(StoreUnavailable, match="57014"):
        await impatient.work(tenant.scope, lambda tx: tx.connection.execute(sa.text("SELECT pg_sleep(5)")))

    assert await impatient.work(tenant.scope, lambda tx: tx.connection.scalar(sa.text("SELECT 1"))) == 1
    await impatient.close()


async def test_connections_that_the_server_ended_are_replaced_unnoticed(database_url: str, postgres: Postgres) -> None:
    database = await Database.connect(database_url)
    await asyncio.gather(*(database.check() for _ in range(5)))

    # Those of this test's database: another session of pytest may work on the same server.
    mine = f"usename = 'coatcheck_login' AND datname = '{sa.make_url(database_url).database}'"
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}")

    for _ in range(6):
        await database.check()
    await database.close()


async def test_T16_what_a_user_leaves_on_a_connection_does_not_reach_the_next(database_url: str) -> None:
    database = await Database.connect(database_url, pool_size=1)
    tenant = await new_tenancy(database)
    leak = sa.text("SELECT set_config('app.acl', '{public}', false), set_config('role', 'coatcheck_worker', false)")
    await database.work(tenant.scope, lambda tx: tx.connection.execute(leak))

    async with database._engine.connect() as connection:
        acl, is_login = (
            await connection.execute(sa.text("SELECT current_setting('app.acl', true), current_user = session_user"))
        ).one()

    assert (acl or "", is_login) == ("", True)
    await database.close()


async def test_T15_without_a_claim_every_table_is_closed(database_url: str) -> None:
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        tables = [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        connection.commit()
        for table in tables:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SELECT 1 FROM {table}")
            connection.rollback()

    assert len(tables) > 15


@pytest.mark.parametrize("role", ["coatcheck_app", "coatcheck_worker"])
async def test_T15_a_role_without_a_tenant_sees_no_row(database: Database, tenant: Tenancy, database_url: str, role: str) -> None:
    scope = await tenant.principal()
    await store_session(database, scope)

    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        connection.execute(f"SET LOCAL ROLE {role}")
        rows = connection.execute("SELECT count(*) FROM sessions").fetchone()
        connection.execute("SELECT set_config('app.tenant_id', '', true)")
        again = connection.execute("SELECT count(*) FROM sessions").fetchone()

    assert rows == again == (0,)


async def test_an_unknown_server_is_unavailable_and_says_so_soon(database_url: str) -> None:
    with pytest.raises(StoreUnavailable):
        await Database.connect("postgresql://nobody@/nothing?host=/nonexistent")


async def test_a_directory_transaction_sees_tenants_and_no_tenants_rows(database: Database, tenant: Tenancy) -> None:
    await tenant.principal()

    found = await database.directory(directory.tenants)
    seen = await database.directory(lambda tx: tx.connection.scalar(sa.text("SELECT count(*) FROM principals")))

    assert tenant.tenant_id in {row.tenant_id for row in found}
    assert seen == 0
    assert await database.work(TenantScope(tenant.tenant_id), directory.find_tenant) is not None
