"""What everybody can really do with the rows of tests/store/policy_world.py, asked of PostgreSQL; and what it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import psycopg
from psycopg import sql

from coatcheck.store.schema import APP_ROLE, LOGIN_ROLE, OWNER_ROLE, WORKER_ROLE
from tests.store.policy_world import (
    ADDED_BY_ALL,
    ADDED_BY_WRITERS,
    ALICE,
    BOB,
    HERE,
    PERSONAS,
    PLACES,
    READ_BY_ACL,
    READ_BY_ALL,
    THERE,
    Persona,
    Place,
    fresh,
    places_of,
    row,
    tables,
)  # fmt: skip

DENIED = "42501"
"""Insufficient privilege: of the table, or by a policy's check."""

Probe = tuple[str, str, str]
"""Who, what it does to which table, and where."""
READABLE = {"alice": {"conversation", "public", "team"}, "bob": {"public"}, "carol": {"public", "team"}, "dave": {"foreign"}}
WRITABLE = {"alice": {"conversation", "public", "team"}, "carol": {"team"}, "dave": {"foreign"}}


def populate(connection: psycopg.Connection) -> None:
    """Stores every row, past constraints and triggers; for a superuser."""
    connection.execute("SET session_replication_role = replica")
    for table in tables():
        for place in places_of(table):
            _insert(connection, table, row(table, place))


def observed(connection: psycopg.Connection, about: list[str]) -> dict[Probe, object]:
    """Every probe's outcome for these tables. Leaves the open transaction as it was."""
    return {probe: outcome for persona in PERSONAS for probe, outcome in _probes(connection, persona, about)}


def expected(about: list[str]) -> dict[Probe, object]:
    """What every probe should give, told without PostgreSQL."""
    return {probe: outcome for persona in PERSONAS for probe, outcome in _should(persona, about)}


def _probes(connection: psycopg.Connection, persona: Persona, about: list[str]) -> Iterator[tuple[Probe, object]]:
    for table in about:
        yield (persona.name, f"read {table}", ""), _as(connection, persona, lambda table=table: _seen(connection, table))  # type: ignore[misc]
        for name, added in _additions(persona, table):
            outcome = _as(connection, persona, lambda table=table, added=added: _insert(connection, table, added))  # type: ignore[misc]
            yield (persona.name, f"add to {table}", name), outcome
        if persona.role == WORKER_ROLE:
            for change in (
                f"UPDATE {table} SET tenant_id = '{THERE if persona.tenant != THERE else HERE}'",
                f"DELETE FROM {table}",
            ):
                yield (persona.name, change.split()[0], table), _as(connection, persona, lambda c=change: _count(connection, c))  # type: ignore[misc]
    if "runs" in about and persona.role == APP_ROLE:
        change = "UPDATE runs SET lease_owner = 'thief'"
        yield (persona.name, "lease", "runs"), _as(connection, persona, lambda: _count(connection, change))


def _should(persona: Persona, about: list[str]) -> Iterator[tuple[Probe, object]]:
    for table in about:
        yield (persona.name, f"read {table}", ""), _should_see(persona, table)
        for name, _ in _additions(persona, table):
            yield (persona.name, f"add to {table}", name), "ok" if _may_add(persona, table, name) else DENIED
        if persona.role == WORKER_ROLE:
            own = sum(place.tenant == persona.tenant for place in places_of(table))
            yield (persona.name, "UPDATE", table), DENIED if own else 0
            yield (persona.name, "DELETE", table), own
    if "runs" in about and persona.role == APP_ROLE:
        yield (persona.name, "lease", "runs"), len(WRITABLE.get(persona.name, ()))


def _should_see(persona: Persona, table: str) -> object:
    if persona.role == LOGIN_ROLE:
        return DENIED
    places = [place for place in places_of(table) if place.tenant == persona.tenant]
    if persona.role == WORKER_ROLE:
        return {place.name for place in places}
    if persona.role == OWNER_ROLE:
        return set()
    if table in READ_BY_ALL:
        return {place.name for place in places}
    if table not in READ_BY_ACL:
        return DENIED
    readable = READABLE.get(persona.name, set()) & {place.name for place in places_of(table)}
    if table == "cache_entries" and persona.name == "carol":
        readable -= {"team"}  # an answer of Alice's in a session of the team's
    same_session = {"erased run"} if table in ("projections", "cache_entries") and persona.name == "alice" else set()
    return readable | same_session


def _additions(persona: Persona, table: str) -> Iterator[tuple[str, dict[str, object]]]:
    """What a persona tries to add, each with a name."""
    if persona.role == WORKER_ROLE:
        yield "the other tenant's", row(table, PLACES["conversation" if persona.tenant == THERE else "foreign"])
    if persona.role != APP_ROLE:
        return
    for place in PLACES.values():
        if table in (*ADDED_BY_WRITERS, *ADDED_BY_ALL, "cache_ties") and place in places_of(table):
            yield place.name, fresh(table, place)
        if table == "cache_entries" and persona.principal is not None:
            yield place.name, _answer(place, persona.principal, [f"p:{persona.principal}"])
    if persona.name == "alice":
        yield from _of_alice(table)


def _of_alice(table: str) -> Iterator[tuple[str, dict[str, object]]]:
    at, key = PLACES["conversation"], f"p:{ALICE}"
    if table == "sessions":
        yield "that it could not write to", fresh(table, at, writers=[f"p:{BOB}"])
        yield "in another's name", fresh(table, at, owner_id=BOB)
    if table == "entries":
        yield "of one session in a run of another", fresh(table, at, manifest_id=PLACES["public"].run)
        yield "of another session in this run", fresh(table, at, session_id=PLACES["public"].session)
    if table == "cache_entries":
        yield "of no session", _answer(at, ALICE, [key], session_id=None)
        yield "in another's name", _answer(at, BOB, [key])
        yield "for another", _answer(at, ALICE, [f"p:{BOB}"])
        yield "for everybody and another", _answer(at, ALICE, [key, "public"])
        yield "for no one", _answer(at, ALICE, [])


def _answer(place: Place, principal: UUID, acl: list[str], **instead: object) -> dict[str, object]:
    return fresh("cache_entries", place, principal_id=principal, acl=acl, **instead)


def _may_add(persona: Persona, table: str, name: str) -> bool:
    place = PLACES.get(name)
    if place is None:
        return name == "of no session"
    if table in ADDED_BY_ALL:
        return place.tenant == persona.tenant
    if table == "cache_entries":
        return place.name in READABLE.get(persona.name, ()) or (persona.name == "alice" and name == "erased run")
    if table == "cache_ties":
        own = {"alice": {"conversation", "public", "team", "erased run"}, "dave": {"foreign"}}
        return place.name in own.get(persona.name, ())
    if table in ("sessions", "runs"):
        may = WRITABLE.get(persona.name, set()) if table == "runs" or persona.name != "carol" else set()
        return place.name in may
    same_session = name == "erased run" and persona.name == "alice" and table != "entries"
    return place.name in WRITABLE.get(persona.name, ()) or same_session


def _seen(connection: psycopg.Connection, table: str) -> object:
    """The places whose rows of this table can be seen."""
    rows = {_identity(table, row(table, place)): place.name for place in places_of(table)}
    found = connection.execute(f"SELECT * FROM {table}")
    names = [column.name for column in found.description or ()]
    return {rows[_identity(table, dict(zip(names, values, strict=True)))] for values in found}


def _identity(table: str, values: dict[str, object]) -> tuple[object, ...]:
    from coatcheck.store.tables import metadata

    return tuple(values[column.name] for column in metadata.tables[table].primary_key)


def _insert(connection: psycopg.Connection, table: str, values: dict[str, object]) -> str:
    given = {name: value for name, value in values.items() if value is not None}
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, given)),
        sql.SQL(", ").join(sql.Placeholder() * len(given)),
    )
    connection.execute(statement, list(given.values()))
    return "ok"


def _count(connection: psycopg.Connection, statement: str) -> int:
    return connection.execute(statement).rowcount


def _as(connection: psycopg.Connection, persona: Persona, work: Callable[[], object]) -> object:
    """What the work gives under this role and these claims, or the SQLSTATE that it fails with. Nothing of it stays."""
    with _undone(connection):
        claims = (persona.role, str(persona.tenant or ""), "{" + ",".join(persona.acl) + "}" if persona.acl else "")
        connection.execute(
            "SELECT set_config('role', %s, true), set_config('app.tenant_id', %s, true), set_config('app.acl', %s, true)", claims
        )
        try:
            return work()
        except psycopg.Error as error:
            return error.sqlstate


@contextmanager
def _undone(connection: psycopg.Connection) -> Iterator[None]:
    connection.execute("SAVEPOINT probe")
    try:
        yield
    finally:
        connection.execute("ROLLBACK TO SAVEPOINT probe")
