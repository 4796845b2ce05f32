"""Points for the tests of the index: short texts of two tenants and several principals."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from coatcheck.domain.passages import IndexHit, IndexPoint, PassageSpan
from coatcheck.domain.scopes import Scope, TenantScope, principal_key
from coatcheck.index.lexical import analyse_document

NOON = datetime(2026, 5, 7, 12, tzinfo=UTC)
_NAMES = UUID("00000000-0000-4000-8000-00000000abcd")


def named(name: str) -> UUID:
    """A fixed id for a name."""
    return uuid5(_NAMES, name)


@dataclass(frozen=True, slots=True)
class Reader:
    """One principal of one tenant."""

    tenant: UUID
    principal: UUID

    @property
    def key(self) -> str:
        return principal_key(self.principal)

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant, self.principal, (self.key,))

    @property
    def tenant_scope(self) -> TenantScope:
        return TenantScope(self.tenant)


def reader(tenant: str, principal: str) -> Reader:
    return Reader(named(tenant), named(principal))


ANN = reader("acme", "ann")
BEN = reader("acme", "ben")
EVE = reader("other", "eve")


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def point(
    owner: Reader,
    text: str,
    *,
    session: str = "session",
    passage: int = 0,
    roles: Sequence[str] = ("user",),
    hours: float = 0,
    lasts_hours: float = 0,
    generation: int = 1,
    dense: Sequence[float] | None = None,
    version: str = "v1",
    context: str = "",
) -> IndexPoint:
    first_at = NOON + timedelta(hours=hours)
    return IndexPoint(
        tenant_id=owner.tenant,
        session_id=named(session),
        exact_sha256=sha(text),
        reduced_sha256=None,
        acl=(owner.key,),
        kinds=("text",),
        roles=tuple(roles),
        first_at=first_at,
        last_at=first_at + timedelta(hours=lasts_hours),
        span=PassageSpan(passage, 0, len(text)),
        generation=generation,
        content_version=version,
        dense=dense,
        lexical=analyse_document(text, context),
    )


def hashes(hits: Sequence[IndexHit]) -> list[str]:
    return [hit.exact_sha256 for hit in hits]
