"""One compaction: its identity, its lease, what it counted and the handoff it gave."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from coatcheck.domain.messages import WindowFormat


class RunStatus(StrEnum):
    PERSISTED = "persisted"
    """Committed to PostgreSQL, not yet wholly in the index: not acknowledged."""
    ACKNOWLEDGED = "acknowledged"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to finish a piece of work until a time; a later fence ends an earlier one."""

    owner: str
    fence: int
    until: datetime


@dataclass(frozen=True, slots=True)
class HandoffLine:
    """One line under "Worth recalling", with the manifests and the segment it quotes, so that erasure can take it out."""

    text: str
    sha256: str | None
    manifest_id: UUID


@dataclass(frozen=True, slots=True)
class Handoff:
    """The text that stands in the window's place."""

    text: str
    sha256: str
    overview_source: str
    """``generated`` or ``excerpt``."""
    overview: str
    overview_sha256s: tuple[str, ...]
    """The segments that the overview quotes."""
    lines: tuple[HandoffLine, ...]

    @property
    def chars(self) -> int:
        return len(self.text)


@dataclass(frozen=True, slots=True)
class RunCounts:
    """What the run counted; every figure is of the window as it was handed in, after redaction."""

    messages: int
    parts: int
    chars: int
    tokens: int
    token_counter: str
    tokens_estimated: bool
    messages_by_role: dict[str, int]
    segments: int
    keep: int
    compress: int
    drop: int
    already_stored: int
    redactions_by_kind: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One compaction as stored."""

    manifest_id: UUID
    session_id: UUID
    principal_id: UUID
    parent_manifest_id: UUID | None
    idempotency_key: str
    """The caller's key, or the keyed digest of the request where none was given; hex of an HMAC either way."""
    request_digest: str
    status: RunStatus
    lease: Lease | None
    window_format: WindowFormat
    max_handoff_chars: int
    handoff: Handoff
    counts: RunCounts
    revisions: dict[str, str]
    warnings: tuple[dict[str, str], ...]
    timings_ms: dict[str, int]
    created_at: datetime
    acknowledged_at: datetime | None = None
    erased_at: datetime | None = None
    passages: int = 0
    generation: int = 0

    @property
    def erased(self) -> bool:
        return self.erased_at is not None
