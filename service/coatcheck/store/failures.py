"""What a failed statement means: another attempt, a database that cannot be reached, or a fault of ours."""

from __future__ import annotations

import sqlalchemy.exc as sa_exc

from coatcheck.domain.errors import CoatcheckError, StoreFull, StoreUnavailable

DEADLOCK_DETECTED = "40P01"
SERIALIZATION_FAILURE = "40001"
FOREIGN_KEY_VIOLATION = "23503"
DISK_FULL = "53100"

RETRIED = frozenset({DEADLOCK_DETECTED, SERIALIZATION_FAILURE, FOREIGN_KEY_VIOLATION})
"""A foreign key fails when its row was erased between two statements: the whole work sees that at its next attempt."""


def sqlstate(error: sa_exc.DBAPIError) -> str | None:
    """The five characters of PostgreSQL's error code, where the server gave one."""
    state = getattr(error.orig, "sqlstate", None)
    return state if isinstance(state, str) else None


def is_worth_another_attempt(error: Exception) -> bool:
    """Whether the same work, from its start, may well succeed now."""
    return isinstance(error, sa_exc.DBAPIError) and sqlstate(error) in RETRIED


def translated(error: sa_exc.SQLAlchemyError) -> CoatcheckError:
    """The error that leaves the store. PostgreSQL's own message is left out, since its details repeat values of the row."""
    if isinstance(error, sa_exc.TimeoutError):
        return StoreUnavailable("No connection to the database came free in time.")
    if not isinstance(error, sa_exc.DBAPIError):
        return CoatcheckError(f"The store failed ({type(error).__name__}).")
    state = sqlstate(error) or "no code"
    if state == DISK_FULL:
        return StoreFull()
    if error.connection_invalidated or state in RETRIED or isinstance(error, sa_exc.OperationalError | sa_exc.InterfaceError):
        return StoreUnavailable(f"The database cannot be reached, or did not answer in time ({state}).")
    diagnosis = getattr(error.orig, "diag", None)
    place = getattr(diagnosis, "constraint_name", None) or getattr(diagnosis, "table_name", None) or "no constraint"
    return CoatcheckError(f"The database refused a statement ({state}, {place}).")
