"""Work for the index that PostgreSQL owes, and who is doing it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class OutboxKind(StrEnum):
    UPSERT = "upsert"
    """Project one run's segments (or, with a segment hash, that segment again)."""
    ERASE = "erase"
    """Remove the points and then the rows of an erased session or manifest."""
    SWEEP = "sweep"
    """After an erasure that overtook a projection: remove the session's points that have no row."""
    ACL = "acl"
    """Set the acl of every point of a session."""


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """One piece of outstanding work, under the lease of whoever claimed it."""

    item_id: UUID
    tenant_id: UUID
    kind: OutboxKind
    session_id: UUID
    manifest_id: UUID | None
    segment_sha256: str | None
    attempts: int
    fence: int
    created_at: datetime
    quarantined_at: datetime | None = None
    last_error: str | None = None
