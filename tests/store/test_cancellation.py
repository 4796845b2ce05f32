"""A cancellation at any await leaves no open transaction, no setting, and a pool that serves the next."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from coatcheck.domain.errors import CoatcheckError, StoreUnavailable
from coatcheck.store import binary, sessions
from coatcheck.store.database import Database, ReadTransaction, WorkerTransaction, WriteTransaction
from coatcheck.store.engine import with_driver
from coatcheck.store.retained import stream_retained
from tests.cancelling import CancelledAt, assert_left_clean
from tests.postgres import Postgres
from tests.store.made import session_of, store_run, store_session
from tests.tenants import Tenancy, new_tenancy

POOL_SIZE = 2

_CUT = sa.text("""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND state = 'active' AND starts_with(query, :statement)
""")


class Observed:
    """A database and a way to see what its connections are left in."""

    def __init__(self, database: Database, tenant: Tenancy, observer: AsyncEngine) -> None:
        self.database = database
        self.tenant = tenant
        self._observer = observer

    async def assert_clean(self) -> None:
        await assert_left_clean(self.database, self._observer, POOL_SIZE)

    async def cut(self, statement: str) -> int:
        """Ends the connections that run a statement which begins so. Returns how many."""
        async with self._observer.connect() as connection:
            return len((await connection.execute(_CUT, {"statement": statement})).all())


@pytest.fixture
async def observed(postgres: Postgres, database_url: str) -> AsyncIterator[Observed]:
    name = sa.make_url(database_url).database
    assert name is not None
    observer = create_async_engine(with_driver(postgres.owner_url(name)))
    database = await Database.connect(database_url, pool_size=POOL_SIZE)
    yield Observed(database, await new_tenancy(database), observer)
    await database.close()
    await observer.dispose()


async def _reading(observed: Observed) -> Callable[[], Coroutine[Any, Any, object]]:
    scope = await observed.tenant.principal()

    async def work(tx: ReadTransaction) -> object:
        return await sessions.page(tx, None, 10)

    return lambda: observed.database.read(scope, work)


async def _writing(observed: Observed) -> Callable[[], Coroutine[Any, Any, object]]:
    scope = await observed.tenant.principal()

    async def work(tx: WriteTransaction) -> object:
        session = session_of(scope)
        assert await sessions.insert(tx, session)
        return await sessions.find(tx, session.session_id)

    return lambda: observed.database.write(scope, work)


async def _working(observed: Observed) -> Callable[[], Coroutine[Any, Any, object]]:
    async def work(tx: WorkerTransaction) -> object:
        return await tx.connection.scalar(sa.text("SELECT pg_sleep(0.002)"))

    return lambda: observed.database.work(observed.tenant.scope, work)


async def _walking(observed: Observed) -> Callable[[], Coroutine[Any, Any, object]]:
    scope = await observed.tenant.principal()
    await store_run(observed.database, scope, await store_session(observed.database, scope), [f"text {n}" for n in range(5)])

    async def walk() -> object:
        return [page async for page in stream_retained(observed.database, observed.tenant.scope, 1, with_passages=True, most=2)]

    return walk


async def _failing(observed: Observed) -> Callable[[], Coroutine[Any, Any, object]]:
    async def work(tx: WorkerTransaction) -> object:
        await tx.connection.scalar(sa.text("SELECT 1"))
        raise ValueError("work that fails on its own")

    return lambda: observed.database.work(observed.tenant.scope, work)


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("make", [_reading, _writing, _working, _walking, _failing], ids=["read", "write", "work", "walk", "fail"])
async def test_T16_a_cancellation_at_any_await_leaves_nothing_behind(
    observed: Observed, make: Callable[[Observed], Awaitable[Callable[[], Coroutine[Any, Any, object]]]], twice: bool
) -> None:
    transaction = await make(observed)

    n, finished = 0, False
    while not finished:
        n += 1
        stepped = CancelledAt(transaction(), n, twice=twice)
        task = asyncio.ensure_future(stepped)
        with contextlib.suppress(asyncio.CancelledError, ValueError):
            await task
        finished = stepped.waits < n
        await observed.assert_clean()

    assert n > 3


async def test_a_cancelled_write_is_there_whole_or_not_at_all_and_the_next_one_goes_through(observed: Observed) -> None:
    scope = await observed.tenant.principal()

    for n in range(1, 30):
        session = session_of(scope)

        async def work(tx: WriteTransaction, session: Any = session) -> None:
            assert await sessions.insert(tx, session)

        stepped = CancelledAt(observed.database.write(scope, work), n)
        try:
            await asyncio.ensure_future(stepped)
            answered = True
        except asyncio.CancelledError:
            answered = False
        stored = await observed.database.read(scope, lambda tx, session=session: sessions.find(tx, session.session_id))  # type: ignore[misc]
        assert stored == session if answered else stored in (None, session)


async def test_those_who_wait_for_a_connection_can_be_cancelled_without_losing_it(observed: Observed) -> None:
    scope = observed.tenant.scope
    all_taken, release = asyncio.Barrier(POOL_SIZE + 1), asyncio.Event()

    async def hold(tx: WorkerTransaction) -> None:
        await all_taken.wait()
        await release.wait()

    async def quick(tx: WorkerTransaction) -> None:
        await tx.connection.scalar(sa.text("SELECT 1"))

    holding = [asyncio.create_task(observed.database.work(scope, hold)) for _ in range(POOL_SIZE)]
    await all_taken.wait()
    waiting = [asyncio.create_task(observed.database.work(scope, quick)) for _ in range(10)]
    await asyncio.sleep(0.01)
    for task in waiting[::2]:
        task.cancel()
    release.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)

    await asyncio.gather(*holding)
    assert [type(result) for result in results] == [asyncio.CancelledError, type(None)] * 5
    await observed.assert_clean()


async def test_a_time_limit_around_a_slow_statement_ends_it_on_the_server_too(observed: Observed) -> None:
    async def slow(tx: WorkerTransaction) -> None:
        await tx.connection.scalar(sa.text("SELECT pg_sleep(30)"))

    async def slow_in_a_thread(tx: WorkerTransaction) -> None:
        await binary.read(tx.connection, lambda reader: reader.fetch("SELECT pg_sleep(30)"))

    for work in (slow, slow_in_a_thread):
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await observed.database.work(observed.tenant.scope, work)

        assert time.monotonic() - started < 10
        await observed.assert_clean()


async def test_a_statement_that_fails_in_a_thread_fails_as_any_other(observed: Observed) -> None:
    async def denied(tx: WorkerTransaction) -> None:
        await binary.read(tx.connection, lambda reader: reader.fetch("SELECT * FROM pg_authid WHERE rolname = $1::name", "secret"))

    with pytest.raises(CoatcheckError, match="42501") as refused:
        await observed.database.work(observed.tenant.scope, denied)

    assert "secret" not in str(refused.value)
    await observed.assert_clean()


async def test_a_connection_that_is_cut_under_a_thread_is_unavailable(observed: Observed) -> None:
    async def slow(tx: WorkerTransaction) -> None:
        await binary.read(tx.connection, lambda reader: reader.fetch("SELECT pg_sleep(30)"))

    reading = asyncio.create_task(observed.database.work(observed.tenant.scope, slow))
    for _ in range(1_000):
        if await observed.cut("SELECT pg_sleep"):
            break
        await asyncio.sleep(0.01)

    with pytest.raises(StoreUnavailable):
        await reading

    await observed.database.check()


async def test_a_pool_without_a_free_connection_is_unavailable(database_url: str) -> None:
    database = await Database.connect(database_url, pool_size=1, pool_timeout_s=0.05)
    tenant = await new_tenancy(database)

    async def nested(tx: WorkerTransaction) -> None:
        await database.check()

    with pytest.raises(StoreUnavailable):
        await database.work(tenant.scope, nested)

    await database.check()
    await database.close()
