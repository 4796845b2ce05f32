"""The conditions of every query, in one place and for both adapters: a scope, a generation, and what a recall narrows by.

An empty filter matches everything in the engine, so none is ever made: a scope always yields its conditions, or an error.
What a scope may read is one condition on one field (docs/decisions/015): three took a search as long again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.passages import RecallFilter
from coatcheck.domain.scopes import NIL, Scope, TenantScope
from coatcheck.index.points import microseconds, readers


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
class OneOf:
    """As ``AnyOf``, each value asked for by itself: a fifth of the time where the values are few and most points hold one."""

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


Simple = Equals | AnyOf | AtLeast | AtMost | IdIn
Condition = Simple | OneOf


def tenant(scope: TenantScope | Scope) -> tuple[Condition, ...]:
    """What every point of the tenant fulfils. Raises ValueError where there is no tenant."""
    if not isinstance(scope, (TenantScope, Scope)) or scope.tenant_id == NIL:
        raise ValueError("a filter needs a tenant")
    return (Equals("tenant_id", str(scope.tenant_id)),)


def readable(scope: Scope, generation: int) -> tuple[Condition, ...]:
    """What every point that the scope may read in this generation fulfils. Raises ValueError for a scope without acl keys."""
    if not isinstance(scope, Scope) or not scope.acl:
        raise ValueError("a search needs the scope of one principal")
    tenant(scope)
    return (OneOf("readers", readers(scope.tenant_id, generation, scope.acl)),)


def session(scope: TenantScope, session_id: UUID) -> tuple[Condition, ...]:
    return (*tenant(scope), Equals("session_id", str(session_id)))


def points(scope: TenantScope, ids: Sequence[UUID]) -> tuple[Condition, ...]:
    return (*tenant(scope), IdIn(tuple(ids)))


def narrowing(narrow: RecallFilter) -> tuple[Condition, ...]:
    """Any of the sessions, any of the roles, seen at or after ``since`` and at or before ``until``."""
    conditions: list[Condition] = []
    if narrow.session_ids is not None:  # who is kept to no session finds nothing: none is not all
        conditions.append(AnyOf("session_id", tuple(str(session_id) for session_id in narrow.session_ids)))
    if narrow.roles:
        conditions.append(AnyOf("roles", tuple(map(scalar_text, narrow.roles))))
    if narrow.since is not None:
        conditions.append(AtLeast("last_at", microseconds(narrow.since)))
    if narrow.until is not None:
        conditions.append(AtMost("first_at", microseconds(narrow.until)))
    return tuple(conditions)


def parted(conditions: Sequence[Condition]) -> tuple[list[Equals], list[Simple]]:
    """Of which one must hold, where there are any, and which all must. Raises ValueError where everything would match."""
    choices = [condition for condition in conditions if isinstance(condition, OneOf)]
    if not conditions or len(choices) > 1 or not all(choice.values for choice in choices):
        raise ValueError("a filter needs conditions, and one choice at most")
    one_of = [Equals(choice.key, value) for choice in choices for value in choice.values]
    return one_of, [condition for condition in conditions if not isinstance(condition, OneOf)]
