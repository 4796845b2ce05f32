"""Rows of the driver's own, read in PostgreSQL's binary format: bytes come as they are, at half their size in hexadecimal.

In bulk, a thread reads them: a thousand texts arrive in some hundred pieces, each of which would wake the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, TypeVar

import psycopg
import sqlalchemy.exc as sa_exc
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format
from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")

CANCEL_AGAIN_S = 0.1
"""A cancellation that comes between two statements ends neither."""

Rows = list[tuple[Any, ...]]


class Reader:
    """One connection, within its transaction, while a thread reads from it."""

    def __init__(self, driver: psycopg.AsyncConnection[Any]) -> None:
        self._driver = driver

    def fetch(self, query: LiteralString, *parameters: object) -> Rows:
        """All rows of the query. Parameters stand as $1, $2, ... with a cast where PostgreSQL cannot tell, and go as text."""
        texts = [_text(parameter).encode() for parameter in parameters]
        result = self._driver.pgconn.exec_params(query.encode(), texts, result_format=Format.BINARY)
        if result.status != ExecStatus.TUPLES_OK:
            raise error_from_result(result)
        transformer = Transformer(self._driver)
        transformer.set_pgresult(result, format=Format.BINARY)
        return transformer.load_rows(0, result.ntuples, tuple)


async def fetch(
    connection: AsyncConnection, query: LiteralString, parameters: Mapping[str, object], *, prepare: bool | None = None
) -> Rows:
    """All rows of the query, within the connection's transaction. Fails as the connection does.

    ``prepare``: at once, not when the driver has seen the query a few times.
    """
    async with _driven(connection) as driver, driver.cursor(binary=True) as cursor:
        await cursor.execute(query, parameters, prepare=prepare)
        return await cursor.fetchall()


async def read(connection: AsyncConnection, work: Callable[[Reader], T]) -> T:
    """What the work returns, which runs in a thread. Fails as the connection does."""
    async with _driven(connection) as driver, driver.lock:
        return await _to_its_end(driver, work)


@asynccontextmanager
async def _driven(connection: AsyncConnection) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """The driver's connection. Its errors become the engine's, and what it closed is not given back to the pool."""
    driver = (await connection.get_raw_connection()).driver_connection
    if not isinstance(driver, psycopg.AsyncConnection):
        raise TypeError("the engine's driver is not psycopg's")
    try:
        yield driver
    except BaseException as error:
        is_gone = driver.closed
        if is_gone:
            await connection.invalidate()
        if isinstance(error, psycopg.Error):
            raise _as_of_engine(error, is_gone=is_gone) from None
        raise


async def _to_its_end(driver: psycopg.AsyncConnection[Any], work: Callable[[Reader], T]) -> T:
    """As ``asyncio.to_thread``. A caller that is cancelled has the statement ended, and waits for the thread: until then nobody
    else may use its connection."""
    running = asyncio.ensure_future(asyncio.to_thread(work, Reader(driver)))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            driver.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([running], timeout=CANCEL_AGAIN_S)
        with contextlib.suppress(psycopg.Error, asyncio.CancelledError):
            running.result()
        raise


def _text(parameter: object) -> str:
    if isinstance(parameter, Sequence) and not isinstance(parameter, str):
        return f"{{{','.join(map(str, parameter))}}}"
    return str(parameter)


def _as_of_engine(error: psycopg.Error, *, is_gone: bool) -> BaseException:
    """SQLAlchemy's error for the driver's, which decides what is worth another attempt. It carries no parameters."""
    return sa_exc.DBAPIError.instance(None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=is_gone)
