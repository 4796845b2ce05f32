"""Who may see what: the value that every store and index function takes first.

Only ``coatcheck.identity`` makes scopes, from a verified credential or from the tenant walk of a worker; a test over the
source holds that. There is no scope that means "all".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

NIL = UUID(int=0)
PUBLIC = "public"


def principal_key(principal_id: UUID) -> str:
    """The acl key of one principal."""
    return f"p:{principal_id}"


def team_key(team_id: UUID) -> str:
    """The acl key of one team."""
    return f"t:{team_id}"


def kind_or_team(text: str, kinds: Collection[str]) -> tuple[str, UUID | None] | None:
    """Whom something is for: one of ``kinds`` by its name, or ``team:<uuid>``; None where the text says neither."""
    kind, _, team = text.partition(":")
    if kind != "team":
        return (text, None) if text in kinds else None
    try:
        return kind, UUID(team)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class TenantScope:
    """One tenant, whole: for workers, scans and operators, never for a reader's request."""

    tenant_id: UUID

    def __post_init__(self) -> None:
        if self.tenant_id == NIL:
            raise ValueError("a scope needs a tenant")


@dataclass(frozen=True, slots=True)
class Scope:
    """One tenant and the acl keys that one principal holds in it: ``p:<id>``, ``t:<id>``, ``public``."""

    tenant_id: UUID
    principal_id: UUID
    acl: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.tenant_id == NIL or self.principal_id == NIL:
            raise ValueError("a scope needs a tenant and a principal")
        if principal_key(self.principal_id) not in self.acl:
            raise ValueError("a scope holds at least its own principal's key")
        if any(key != PUBLIC and not key.startswith(("p:", "t:")) for key in self.acl):
            raise ValueError("an acl key is p:<id>, t:<id> or public")
