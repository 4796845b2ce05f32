"""Rows of the driver's own, read in PostgreSQL's binary format: bytes come as they are, at half their size in hexadecimal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString

import psycopg
import sqlalchemy.exc as sa_exc
from sqlalchemy.ext.asyncio import AsyncConnection


async def fetch(connection: AsyncConnection, query: LiteralString, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
    """All rows of the query, within the connection's transaction. Fails as the connection does."""
    driver = (await connection.get_raw_connection()).driver_connection
    if not isinstance(driver, psycopg.AsyncConnection):
        raise TypeError("the engine's driver is not psycopg's")
    try:
        async with driver.cursor(binary=True) as cursor:
            await cursor.execute(query, parameters)
            return await cursor.fetchall()
    except psycopg.Error as error:
        raise _as_of_engine(error, is_gone=driver.closed) from None


def _as_of_engine(error: psycopg.Error, *, is_gone: bool) -> BaseException:
    """SQLAlchemy's error for the driver's, which decides what is worth another attempt. It carries no parameters."""
    return sa_exc.DBAPIError.instance(None, None, error, psycopg.Error, hide_parameters=True, connection_invalidated=is_gone)
