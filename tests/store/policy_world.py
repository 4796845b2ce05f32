"""Rows of every table in the hands of several people, and what each of them should be able to do with these.

One of each table's rows stands at each place where it makes sense: in a conversation of Alice's, in a public session of hers, in
one of her team's, in an erased one, in an erased run, and in another tenant. They are made past every constraint, so that a new
table needs no care but its line in ``READ_BY_ALL`` or its like.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB

from coatcheck.store.policies import tables_with_row_security
from coatcheck.store.schema import APP_ROLE, LOGIN_ROLE, OWNER_ROLE, WORKER_ROLE
from coatcheck.store.tables import metadata

_NAMES = UUID("00000000-0000-4000-8000-0000000000aa")
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def named(name: str) -> UUID:
    return uuid5(_NAMES, name)


HERE, THERE = named("tenant here"), named("tenant there")
ALICE, BOB, CAROL, DAVE, TEAM = (named(name) for name in ("alice", "bob", "carol", "dave", "team"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows stand: a session with a run."""

    name: str
    tenant: UUID
    owner: UUID
    acl: tuple[str, ...]
    writers: tuple[str, ...]
    session: UUID
    run: UUID
    session_erased: bool = False
    run_erased: bool = False


def _place(name: str, owner: UUID, *more: str, writers: tuple[str, ...] = (), session: str = "", **erased: bool) -> Place:
    key = f"p:{owner}"
    tenant = THERE if owner == DAVE else HERE
    return Place(name, tenant, owner, (key, *more), (key, *writers), named(session or name), named(f"run {name}"), **erased)


PLACES = {
    place.name: place
    for place in (
        _place("conversation", ALICE),
        _place("public", ALICE, "public"),
        _place("team", ALICE, f"t:{TEAM}", writers=(f"t:{TEAM}",)),
        _place("erased", ALICE, session_erased=True),
        _place("erased run", ALICE, session="conversation", run_erased=True),
        _place("foreign", DAVE, "public"),
    )
}


@dataclass(frozen=True, slots=True)
class Persona:
    """A role with what a transaction claims for it; None where it claims nothing."""

    name: str
    role: str
    tenant: UUID | None = None
    acl: tuple[str, ...] = ()
    principal: UUID | None = None


ALICES = (f"p:{ALICE}", f"t:{TEAM}", "public")
PERSONAS = (
    Persona("alice", APP_ROLE, HERE, ALICES, ALICE),
    Persona("bob", APP_ROLE, HERE, (f"p:{BOB}", "public"), BOB),
    Persona("carol", APP_ROLE, HERE, (f"p:{CAROL}", f"t:{TEAM}", "public"), CAROL),
    # Every key that opens anything here, in the other tenant: it is the tenant that must tell them apart.
    Persona("dave", APP_ROLE, THERE, (f"p:{DAVE}", f"p:{BOB}", f"p:{CAROL}", *ALICES), DAVE),
    Persona("keys without a tenant", APP_ROLE, None, ALICES, ALICE),
    Persona("a tenant without keys", APP_ROLE, HERE),
    Persona("nobody", APP_ROLE),
    Persona("worker", WORKER_ROLE, HERE),
    Persona("worker there", WORKER_ROLE, THERE),
    Persona("worker of nobody", WORKER_ROLE),
    Persona("owner of the tables", OWNER_ROLE, HERE, ALICES),
    Persona("login", LOGIN_ROLE, HERE, ALICES),
)

OF_SESSIONS = ("runs", "segments", "reductions", "blobs", "entries", "projections", "cache_entries", "cache_ties", "outbox")
READ_BY_ALL = ("principals", "teams", "memberships", "stored_usage")
"""Of its own tenant, by everybody in it."""
READ_BY_ACL = ("sessions", "runs", "segments", "reductions", "blobs", "entries", "projections", "tombstones", "cache_entries")
ADDED_BY_WRITERS = ("sessions", "runs", "segments", "reductions", "blobs", "entries", "outbox")
ADDED_BY_ALL = ("audit", "stored_usage")
FRESH = {
    "sessions": ("session_id", "name"), "runs": ("manifest_id", "idempotency_key"), "segments": ("sha256",), "blobs": ("sha256",),
    "reductions": ("reducer_revision",), "entries": ("ordinal",), "outbox": ("item_id",), "audit": ("audit_id",),
    "stored_usage": ("usage_id",), "cache_entries": ("entry_id",), "cache_ties": ("tag",),
}  # fmt: skip
"""The columns that make another row of the same place."""


def places_of(table: str) -> list[Place]:
    """Where rows of this table stand."""
    if table in OF_SESSIONS:
        return list(PLACES.values())
    if table == "sessions":
        return [place for place in PLACES.values() if not place.run_erased]
    wanted = ("conversation", "public", "team", "foreign") if table == "tombstones" else ("conversation", "foreign")
    return [PLACES[name] for name in wanted]


def row(table: str, place: Place, **instead: object) -> dict[str, object]:
    """A row of this place, with something else ``instead`` in some columns."""
    return {column.name: _value(column, place) for column in metadata.tables[table].columns} | instead


def fresh(table: str, place: Place, **instead: object) -> dict[str, object]:
    """Another row of this place, which no unique constraint knows yet."""
    columns = metadata.tables[table].columns
    new = {name: named("fresh") if isinstance(columns[name].type, sa.Uuid) else "fresh" for name in FRESH[table]}
    return row(table, place, **(new | ({"ordinal": 99} if table == "entries" else {})) | instead)


def tables() -> list[str]:
    return tables_with_row_security()


def _value(column: sa.Column[Any], place: Place) -> object:
    table, name = column.table.name, column.name
    known: dict[str, object] = {
        "tenant_id": place.tenant, "session_id": place.session, "manifest_id": place.run, "context_manifest_id": place.run,
        "owner_id": place.owner, "principal_id": place.owner, "team_id": TEAM, "acl": list(place.acl),
        "writers": list(place.writers),
        "segment_sha256": _hash(place), "exact_sha256": _hash(place), "blob_sha256": _hash(place), "sha256": _hash(place),
        "entry_id": named(f"entry {place.name}"), "key": place.name, "parent_key_id": named(f"key {place.name}"),
        "name": place.name.encode() if isinstance(column.type, BYTEA) else place.name,
    }  # fmt: skip
    if name == "erased_at":
        gone = place.session_erased if table == "sessions" else place.run_erased
        return NOON if gone or table == "tombstones" else None
    if table == "cache_entries" and name == "acl":
        return ["public"] if place.name == "public" else [f"p:{place.owner}"]
    if name in known:
        return known[name]
    return None if column.nullable else _any(column, place)


def _hash(place: Place) -> str:
    """The same text in every session: what is read of one must not open the others."""
    return "of the erased run" if place.run_erased else "everywhere the same"


def _any(column: sa.Column[Any], place: Place) -> object:
    kind = column.type
    if column.name == "role":
        return "member"
    if isinstance(kind, sa.Uuid):
        return named(f"{column.table.name} {column.name} {place.name}")
    if isinstance(kind, ARRAY):
        return []
    if isinstance(kind, JSONB):
        return Jsonb({})
    if isinstance(kind, sa.TIMESTAMP):
        return NOON
    if isinstance(kind, sa.Boolean):
        return False
    if isinstance(kind, sa.Text):
        return place.name
    return b"x" if isinstance(kind, BYTEA) else 1
