"""What everybody can do with every table, asked of PostgreSQL row by row."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres import Postgres
from tests.store.policy_probes import expected, observed, populate
from tests.store.policy_world import tables


@pytest.fixture(scope="module")
def populated(postgres: Postgres) -> Iterator[psycopg.Connection]:
    with postgres.clone() as name, psycopg.connect(postgres.owner_url(name).replace("+psycopg", "")) as connection:
        populate(connection)
        yield connection
        connection.rollback()


@pytest.mark.parametrize("table", tables())
def test_T15_everybody_sees_adds_and_changes_what_is_theirs_and_nothing_else(populated: psycopg.Connection, table: str) -> None:
    should, does = expected([table]), observed(populated, [table])

    assert {probe: (does[probe], outcome) for probe, outcome in should.items() if does[probe] != outcome} == {}
    assert set(should) == set(does)
