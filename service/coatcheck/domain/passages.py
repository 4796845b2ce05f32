"""A passage is what one point of the index stands for: a stretch of a segment that the embedder reads whole."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid5

POINT_NAMESPACE = UUID("b5c1f6a0-5f2e-5c0b-9d5e-7c0a7c4ec4ec")


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Non-zero dimensions and their weights, same length, indices unique."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PassageSpan:
    """A stretch of a segment's embedded text, in code points: [start, end)."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """One passage in the index. ``dense`` is None where only the lexical leg holds it (base64, minified text, no embedder)."""

    tenant_id: UUID
    session_id: UUID
    exact_sha256: str
    reduced_sha256: str | None
    acl: tuple[str, ...]
    kinds: tuple[str, ...]
    roles: tuple[str, ...]
    first_at: datetime
    last_at: datetime
    span: PassageSpan
    generation: int
    content_version: str
    """Which text and context were projected; a projection is current only while this is equal."""
    dense: Sequence[float] | None
    lexical: SparseVector

    @property
    def point_id(self) -> UUID:
        return point_id(self.tenant_id, self.session_id, self.exact_sha256, self.span.number, self.generation)


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point's identity and payload as read back, without vectors."""

    point_id: UUID
    tenant_id: UUID
    session_id: UUID
    exact_sha256: str
    reduced_sha256: str | None
    acl: tuple[str, ...]
    passage: int
    generation: int
    content_version: str


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A candidate of one leg, best first. Scores stay inside the adapter: only the order leaves."""

    session_id: UUID
    exact_sha256: str
    passage: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class RecallFilter:
    """What a recall narrows by, beside the scope."""

    session_ids: tuple[UUID, ...] | None = None
    """Any of these; None: any at all. Of no session there is nothing."""
    roles: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


def point_id(tenant_id: UUID, session_id: UUID, exact_sha256: str, passage: int, generation: int) -> UUID:
    """The point's id: uuid5 of what it stands for, so that writing it again writes it in place."""
    return uuid5(POINT_NAMESPACE, f"{tenant_id}/{session_id}/{exact_sha256}/{passage}/{generation}")


class PointIds:
    """``point_id`` for many points of one tenant and generation, at half the time: most share their session with the one before."""

    def __init__(self, tenant_id: UUID, generation: int) -> None:
        self._tenant_id = tenant_id
        self._generation = generation
        self._session_id: UUID | None = None
        self._begun = hashlib.sha1(usedforsecurity=False)

    def of(self, session_id: UUID, exact_sha256: str, passage: int) -> UUID:
        if session_id != self._session_id:
            begun = POINT_NAMESPACE.bytes + f"{self._tenant_id}/{session_id}/".encode()
            self._session_id, self._begun = session_id, hashlib.sha1(begun, usedforsecurity=False)
        named = self._begun.copy()
        named.update(f"{exact_sha256}/{passage}/{self._generation}".encode())
        return UUID(bytes=named.digest()[:16], version=5)
