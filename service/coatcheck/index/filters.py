"""The conditions of every query, in one place and for both adapters: a scope, a generation, and what a recall narrows by.

An empty filter matches everything in the engine, so none is ever made: a scope always yields its conditions, or an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.passages import RecallFilter
from coatcheck.domain.scopes import NIL, Scope, TenantScope
from coatcheck.index.points import microseconds


@dataclass(frozen=True, slots=True)
class Equals:
    """A field that holds this value, or an array that contains it."""

    key: str
    value: str | int


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A field that holds one of these values, or an array that contains one."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number no less than this."""

    key: str
    value: int


@dataclass(frozen=True, slots=True)
class AtMost:
    """A number no greater than this."""

    key: str
    value: int


@dataclass(frozen=True, slots=True)
class IdIn:
    """One of these points."""

    ids: tuple[UUID, ...]


Condition = Equals | AnyOf | AtLeast | AtMost | IdIn


def tenant(scope: TenantScope | Scope) -> tuple[Condition, ...]:
    """What every point of the tenant fulfils. Raises ValueError where there is no tenant."""
    if not isinstance(scope, (TenantScope, Scope)) or scope.tenant_id == NIL:
        raise ValueError("a filter needs a tenant")
    return (Equals("tenant_id", str(scope.tenant_id)),)


def readable(scope: Scope, generation: int) -> tuple[Condition, ...]:
    """What every point that the scope may read in this generation fulfils. Raises ValueError for a scope without acl keys."""
    if not isinstance(scope, Scope) or not scope.acl:
        raise ValueError("a search needs the scope of one principal")
    return (*tenant(scope), AnyOf("acl", tuple(scope.acl)), Equals("generation", generation))


def session(scope: TenantScope, session_id: UUID) -> tuple[Condition, ...]:
    return (*tenant(scope), Equals("session_id", str(session_id)))


def points(scope: TenantScope, ids: Sequence[UUID]) -> tuple[Condition, ...]:
    return (*tenant(scope), IdIn(tuple(ids)))


def narrowing(narrow: RecallFilter) -> tuple[Condition, ...]:
    """Any of the sessions, any of the roles, seen at or after ``since`` and at or before ``until``."""
    conditions: list[Condition] = []
    if narrow.session_ids:
        conditions.append(AnyOf("session_id", tuple(str(session_id) for session_id in narrow.session_ids)))
    if narrow.roles:
        conditions.append(AnyOf("roles", tuple(map(scalar_text, narrow.roles))))
    if narrow.since is not None:
        conditions.append(AtLeast("last_at", microseconds(narrow.since)))
    if narrow.until is not None:
        conditions.append(AtMost("first_at", microseconds(narrow.until)))
    return tuple(conditions)
