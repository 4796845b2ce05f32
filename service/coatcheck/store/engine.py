"""The connection pool: which driver, which time-outs, and connections that carry nothing from one user to the next."""

from __future__ import annotations

import psycopg
import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
from psycopg.pq import TransactionStatus
from psycopg.types.array import ListBinaryDumper
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

DRIVER = "postgresql+psycopg"
CONNECT_TIMEOUT_S = 5
LOCK_TIMEOUT_S = 10
IDLE_IN_TRANSACTION_TIMEOUT_S = 60

_RESET = "RESET ROLE; RESET ALL"
_USED = "coatcheck.used"


def build(url: str, *, pool_size: int, statement_timeout_s: float, pool_timeout_s: float) -> AsyncEngine:
    """An engine for one event loop; nothing is connected yet."""
    timeouts_s = {
        "statement_timeout": statement_timeout_s,
        "lock_timeout": min(LOCK_TIMEOUT_S, statement_timeout_s),
        "idle_in_transaction_session_timeout": max(IDLE_IN_TRANSACTION_TIMEOUT_S, 2 * statement_timeout_s),
    }
    location = with_driver(url)
    own = location.query.get("options", "")
    # In UTC, since in another zone the first and the last day that Python knows cannot be read back.
    own_options = [own] if isinstance(own, str) else list(own)
    options = " ".join([*own_options, "-c timezone=UTC", *(f"-c {name}={int(s * 1_000)}" for name, s in timeouts_s.items())])
    engine = create_async_engine(
        location.difference_update_query(["options"]),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=pool_timeout_s,
        pool_use_lifo=True,
        # Parameters are content: no error, no log line may show them.
        hide_parameters=True,
        use_native_hstore=False,
        connect_args={"options": options.strip(), "connect_timeout": CONNECT_TIMEOUT_S, "application_name": "coatcheck"},
    )
    event.listen(engine.sync_engine.pool, "connect", _send_arrays_as_bytes)
    event.listen(engine.sync_engine.pool, "checkout", _reset_at_checkout)
    return engine


def with_driver(url: str) -> sa.URL:
    """The URL for SQLAlchemy, whichever of PostgreSQL's names for itself it begins with."""
    return sa.make_url(url.replace("postgres://", "postgresql://", 1)).set(drivername=DRIVER)


def _send_arrays_as_bytes(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    """Sends arrays in PostgreSQL's binary format: in its text format 2 MB of bytes are 10 MB, and take seconds to write."""
    connection.adapters.register_dumper(list, ListBinaryDumper)


def _reset_at_checkout(connection: DBAPIConnection, entry: ConnectionPoolEntry, _proxied: PoolProxiedConnection) -> None:
    """Checks in one round trip that a pooled connection lives, and takes whatever setting its last user may have left on it.

    What the transactions set ends with them, and the pool rolls back at check-in, so this is the second wall. It must run
    outside a transaction: a RESET that is rolled back has not happened.
    """
    if not entry.info.get(_USED):
        entry.info[_USED] = True
        return
    try:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.rollback()
        connection.autocommit = True
        try:
            cursor = connection.cursor()
            cursor.execute(_RESET)
            cursor.close()
        finally:
            connection.autocommit = False
    except psycopg.Error as error:
        raise sa_exc.InvalidatePoolError("a pooled connection is gone") from error
