"""What stands in the tables, read by their owner past every policy."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from coatcheck.store.engine import with_driver


def mentioning(owner_url: str, words: Sequence[str]) -> set[str]:
    """Every row of every table in which one of these words stands, as text behind the table's name."""
    engine = sa.create_engine(with_driver(owner_url), poolclass=sa.NullPool)
    with engine.connect() as connection:
        tables = list(connection.scalars(sa.text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")))
        found = {
            f"{table}: {row}"
            for table in tables
            for row in connection.scalars(sa.text(f"SELECT t::text FROM {table} t WHERE t::text LIKE ANY (:words)"), _like(words))
        }
    engine.dispose()
    return found


def _like(words: Sequence[str]) -> dict[str, list[str]]:
    return {"words": [f"%{word}%" for word in words]}
