"""Every mistake in the policies is noticed by their tests: each is made in a real database, and has to be killed.

By what people can do (tests/store/policy_probes.py) or, where another policy still holds what this one no longer says, by what the
catalogue has to say (tests/store/test_policies.py).
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.postgres import Postgres
from tests.store import test_policies
from tests.store.policy_mutants import Mutant, mutants
from tests.store.policy_probes import expected, observed, populate
from tests.store.policy_world import tables

LEVELS = {
    "sessions": tables(),
    "runs": ["runs", "entries", "segments", "reductions", "blobs"],
    "cache_entries": ["cache_entries", "cache_ties"],
}
"""The tables whose policies read this one; of others, the table alone."""

ASSERTIONS: list[Callable[[psycopg.Connection], None]] = [
    function
    for name, function in vars(test_policies).items()
    if name.startswith("test_") and list(inspect.signature(function).parameters) == ["catalogue"]
]


@pytest.fixture(scope="module")
def populated(postgres: Postgres) -> Iterator[psycopg.Connection]:
    with postgres.clone() as name, psycopg.connect(postgres.owner_url(name).replace("+psycopg", "")) as connection:
        populate(connection)
        yield connection
        connection.rollback()


def killed_by(connection: psycopg.Connection, mutant: Mutant) -> str | None:
    """What notices the mistake, which is taken back."""
    connection.execute("SAVEPOINT mutant")
    try:
        for statement in mutant.statements:
            connection.execute(statement)
        for table in (mutant.table, *(name for name in LEVELS.get(mutant.table, ()) if name != mutant.table)):
            if observed(connection, [table]) != expected([table]):
                return "behaviour"
        return "catalogue" if any(_fails(assertion, connection) for assertion in ASSERTIONS) else None
    finally:
        connection.execute("ROLLBACK TO SAVEPOINT mutant")


def _fails(assertion: Callable[[psycopg.Connection], None], connection: psycopg.Connection) -> bool:
    try:
        assertion(connection)
    except AssertionError:
        return True
    return False


def test_without_a_mistake_nothing_fails(populated: psycopg.Connection) -> None:
    assert len(ASSERTIONS) >= 7
    assert killed_by(populated, Mutant("none", "sessions", ())) is None


@pytest.mark.accept
@pytest.mark.parametrize("table", tables())
def test_T15_every_mistake_in_a_policy_is_noticed(populated: psycopg.Connection, table: str) -> None:
    of_table = [mutant for mutant in mutants() if mutant.table == table]

    verdicts = {mutant: killed_by(populated, mutant) for mutant in of_table}

    survived = [(mutant.name, mutant.statements) for mutant, verdict in verdicts.items() if verdict is None]
    print(f"{table}: {len(of_table)} mutants, {dict(Counter(verdicts.values()))}")
    assert survived == []
    assert len(of_table) >= 12
