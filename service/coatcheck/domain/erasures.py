"""An erasure as it is kept on record: which ids, how much of what, when, on whose word. Never content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from coatcheck.domain.canonical import JsonValue, to_sorted_bytes

ErasureKind = Literal["session", "manifest", "tenant"]
ErasureReason = Literal["request", "retention", "off-boarding", "restore"]


@dataclass(frozen=True, slots=True)
class Erasure:
    """One erasure. ``journal_mac`` is the HMAC of its line in the erasure journal; ``tag``, once complete, covers the rest."""

    erasure_id: UUID
    tenant_id: UUID
    kind: ErasureKind
    target_id: UUID
    session_id: UUID | None
    owner_id: UUID | None
    """Whose session it was: who may read the receipt, beside operators."""
    requested_by: UUID | None
    reason: ErasureReason
    requested_at: datetime
    counts: Mapping[str, int]
    completed_at: datetime | None = None
    journal_mac: str | None = None
    key_version: int | None = None
    tag: str | None = None

    def signed_bytes(self) -> bytes:
        """What the tag is made over: every field that a receipt shows."""
        plain: dict[str, JsonValue] = {
            "erasure_id": str(self.erasure_id),
            "tenant_id": str(self.tenant_id),
            "kind": self.kind,
            "target_id": str(self.target_id),
            "session_id": None if self.session_id is None else str(self.session_id),
            "requested_by": None if self.requested_by is None else str(self.requested_by),
            "reason": self.reason,
            "requested_at": _utc(self.requested_at),
            "completed_at": None if self.completed_at is None else _utc(self.completed_at),
            "counts": dict(self.counts),
            "journal_mac": self.journal_mac,
            "key_version": self.key_version,
        }
        return to_sorted_bytes(plain)


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()
