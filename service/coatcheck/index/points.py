"""A point's payload: what is filtered by and what identifies it. Ids, times and roles, never text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal
from uuid import UUID

from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.passages import IndexHit, IndexPoint, StoredPoint
from coatcheck.domain.scopes import NIL, TenantScope

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAYOUT_REVISION = "readers-1"
"""Part of the index's generation: raised with every change of what a search asks of a payload."""
LEXICAL = "lexical"
HIT_FIELDS = ["session_id", "exact_sha256", "passage", "last_at"]
STORED_FIELDS = [
    "tenant_id", "session_id", "exact_sha256", "reduced_sha256", "readers", "passage", "generation", "content_version",
]  # fmt: skip

Payload = dict[str, Any]
"""JSON, as the engine takes and gives it."""


@dataclass(frozen=True, slots=True)
class IndexedField:
    """A payload field that is filtered by, and how: equal to (a keyword, a number) or as a range of numbers."""

    name: str
    kind: Literal["tenant", "keyword", "number", "range"]


INDEXED_FIELDS = (
    IndexedField("tenant_id", "tenant"),
    IndexedField("session_id", "keyword"),
    IndexedField("readers", "keyword"),
    IndexedField("exact_sha256", "keyword"),
    IndexedField("roles", "keyword"),
    IndexedField("generation", "number"),
    IndexedField("first_at", "range"),
    IndexedField("last_at", "range"),
)


def dense_name(dimensions: int) -> str:
    """The named vector that holds embeddings of this length: generations of different embedders lie side by side."""
    return f"dense_{dimensions}"


def microseconds(at: datetime) -> int:
    """An aware time as whole microseconds since 1970: exact in the double that a range is compared in."""
    return (at - EPOCH) // timedelta(microseconds=1)


def at(microseconds_since_1970: int) -> datetime:
    """The inverse of ``microseconds``."""
    return EPOCH + timedelta(microseconds=microseconds_since_1970)


def readers(tenant_id: UUID, generation: int, acl: Sequence[str]) -> tuple[str, ...]:
    """Who may read a point, of which tenant and in which generation: one value for each acl key, and all that a search asks."""
    prefix = _prefix(tenant_id, generation)
    return tuple([prefix + key for key in acl])


def check_tenant(scope: TenantScope, points: Iterable[IndexPoint]) -> None:
    """Raises ValueError for a point of another tenant, or one that nobody may read."""
    for point in points:
        if point.tenant_id != scope.tenant_id:
            raise ValueError("a point belongs to another tenant than its scope")
        if not point.acl:
            raise ValueError("a point needs an acl")


def to_payload(point: IndexPoint) -> Payload:
    return {
        "tenant_id": str(point.tenant_id),
        "session_id": str(point.session_id),
        "readers": list(readers(point.tenant_id, point.generation, point.acl)),
        "exact_sha256": point.exact_sha256,
        "reduced_sha256": point.reduced_sha256,
        "kinds": [scalar_text(kind) for kind in point.kinds],
        "roles": [scalar_text(role) for role in point.roles],
        "first_at": microseconds(point.first_at),
        "last_at": microseconds(point.last_at),
        "passage": point.span.number,
        "start": point.span.start,
        "end": point.span.end,
        "generation": point.generation,
        "content_version": point.content_version,
    }


def to_stored(point_id: UUID, payload: Mapping[str, Any]) -> StoredPoint:
    """What a point says of itself. Where it says nothing, or nonsense, it stands for nothing: a scan is to name it, not to fail.

    A reader of another tenant or generation than the point's stays whole in ``acl``, where it equals no acl key.
    """
    tenant_id, generation = _uuid(payload.get("tenant_id")), _count(payload.get("generation"))
    prefix = _prefix(tenant_id, generation)
    return StoredPoint(
        point_id=point_id,
        tenant_id=tenant_id,
        session_id=_uuid(payload.get("session_id")),
        exact_sha256=str(payload.get("exact_sha256") or ""),
        reduced_sha256=payload.get("reduced_sha256"),
        acl=tuple([str(reader).removeprefix(prefix) for reader in payload.get("readers") or ()]),
        passage=_count(payload.get("passage")),
        generation=generation,
        content_version=str(payload.get("content_version") or ""),
    )


def to_hits(found: Iterable[tuple[float, Mapping[str, Any]]]) -> list[IndexHit]:
    """Hits from scores and payloads, best first; among equal scores the newest first, so that no order is left to chance."""
    ordered = sorted(
        [(-score, -said["last_at"], said["exact_sha256"], said["passage"], said["session_id"]) for score, said in found]
    )
    return [
        IndexHit(session_id=_uuid_of(session), exact_sha256=sha256, passage=passage, last_at=at(-last_at))
        for _, last_at, sha256, passage, session in ordered
    ]


@lru_cache(maxsize=64)
def _prefix(tenant_id: UUID, generation: int) -> str:
    return f"{generation}/{tenant_id}/"


@lru_cache(maxsize=1_024)
def _uuid_of(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        return NIL


def _uuid(value: object) -> UUID:
    """Neighbours share their tenant, and often their session."""
    return _uuid_of(value if isinstance(value, str) else str(value))


def _count(value: object) -> int:
    return value if isinstance(value, int) else -1
