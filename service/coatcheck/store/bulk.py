"""Many rows in one statement: arrays go in, ``unnest`` turns them into rows (faster than COPY into a temporary table here)."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def insert(table: sa.Table, *, shared: tuple[str, ...], each: tuple[str, ...]) -> sa.TextClause:
    """Inserts a row for each element of the arrays ``each``; ``shared`` are the same in all of them. Rows that are there stay.

    No conflict target is named and nothing is returned: either would need the right to read a row that is not yet readable.
    Whoever calls sorts the rows by their key, so that two of these wait for one another instead of dying of it.
    """
    columns = ", ".join((*shared, *each))
    values = ", ".join([*(f"CAST(:{name} AS {_type(table, name)})" for name in shared), *(f"row.{name}" for name in each)])
    return sa.text(f"INSERT INTO {table.name} ({columns}) SELECT {values} FROM {unnested(table, each)} ON CONFLICT DO NOTHING")


def unnested(table: sa.Table, names: tuple[str, ...]) -> str:
    """``unnest`` over one array parameter for each named column, as rows called ``row``."""
    arrays = ", ".join(f"CAST(:{name} AS {_type(table, name)}[])" for name in names)
    return f"unnest({arrays}) AS row({', '.join(names)})"


def _type(table: sa.Table, name: str) -> str:
    return str(table.c[name].type.compile(_DIALECT))
