"""Cancelling a coroutine exactly where it waits, and seeing that it left no connection with anything on it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from coatcheck.store.database import Database

_STATES = sa.text("""
    SELECT state, count(*) AS connections FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'coatcheck' GROUP BY state
""")

_LEFT_OVER = sa.text("""
    SELECT current_user = session_user AS own_role,
           coalesce(nullif(current_setting('app.tenant_id', true), ''), '') AS tenant,
           coalesce(nullif(current_setting('app.acl', true), ''), '') AS acl,
           current_setting('transaction_read_only') AS read_only
""")


class CancelledAt:
    """Awaits a coroutine and cancels its task while it waits for the nth time (and, with ``twice``, for the time after)."""

    def __init__(self, coroutine: Coroutine[Any, Any, object], n: int, *, twice: bool = False) -> None:
        self._coroutine = coroutine
        self._at = {n, n + 1} if twice else {n}
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, object]:
        thrown: BaseException | None = None
        while True:
            try:
                waited_for = self._coroutine.send(None) if thrown is None else self._coroutine.throw(thrown)
            except StopIteration as stop:
                return stop.value
            self.waits += 1
            if self.waits in self._at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            thrown = None
            try:
                yield waited_for
            except BaseException as error:  # handed on to the coroutine, whatever it is
                thrown = error


async def assert_left_clean(database: Database, observer: AsyncEngine, connections: int) -> None:
    """No transaction open on the server, every connection back in the pool, and no setting on any of them."""
    for _ in range(200):  # what a cancellation left to be rolled back is rolled back in a task of its own
        async with observer.connect() as connection:
            states = {row.state: row.connections for row in await connection.execute(_STATES)}
        if set(states) <= {"idle"}:
            break
        await asyncio.sleep(0.01)
    assert set(states) <= {"idle"}, states
    pool = database._engine.sync_engine.pool
    assert pool.checkedout() == 0  # type: ignore[attr-defined]
    held = [await database._engine.connect().__aenter__() for _ in range(connections)]
    try:
        for connection in held:
            left = (await connection.execute(_LEFT_OVER)).one()
            assert (left.own_role, left.tenant, left.acl, left.read_only) == (True, "", "", "off")
    finally:
        for connection in held:
            await connection.close()
