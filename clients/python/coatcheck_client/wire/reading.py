"""Reading by manifest, by hash and by session."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from coatcheck_client.wire.base import AnyText, FormatName, Request, Response, WarningOut
from coatcheck_client.wire.compaction import HandoffOut, IndexCounts, RedactionCounts, SegmentCounts, WindowCounts


class ManifestOut(Response):
    """One run: its counts, its handoff, its parent."""

    manifest_id: UUID
    session_id: UUID
    session: str
    parent_manifest_id: UUID | None
    status: Literal["persisted", "acknowledged"]
    format: FormatName
    created_at: datetime
    acknowledged_at: datetime | None
    handoff: HandoffOut
    window: WindowCounts
    segments: SegmentCounts
    redactions: RedactionCounts
    index: IndexCounts
    revisions: dict[str, str]
    warnings: list[WarningOut]


class EntryOut(Response):
    ordinal: int
    message_index: int
    part_index: int
    segment_index: int
    role: str
    kind: str
    route: Literal["keep", "compress", "drop"]
    reason: str
    protection: str | None
    scores: dict[str, float] | None = None
    """The router's score of each label of the policy."""
    sha256: str | None
    dropped_sha256: str | None = None
    """Of a dropped text, which is not kept."""
    reduced_sha256: str | None
    verdicts: dict[str, float | str] | None = None
    """What the gates said of the newest shorter form."""
    blob_sha256: str | None
    handoff_manifest_id: UUID | None
    call_id: str | None
    group_id: str | None
    name: AnyText | None
    occurred_at: datetime | None
    chars: int
    text: AnyText | None = None


class EntryPage(Response):
    entries: list[EntryOut]
    next_page_token: str | None = None


class WindowOut(Response):
    """The redacted window in the format it came in."""

    format: FormatName
    system: Any = None
    messages: list[Any]


class SegmentOut(Response):
    sha256: str
    text: AnyText
    chars: int
    session_id: UUID
    manifest_id: UUID
    ordinal: int
    role: str
    kind: str
    reduced_sha256: str | None = None
    reduced_text: AnyText | None = None
    stored_at: datetime


class SessionOut(Response):
    session_id: UUID
    name: str
    owner_id: UUID
    visibility: str
    participants: list[UUID]
    created_at: datetime
    manifests: int
    segments: int


class SessionPage(Response):
    sessions: list[SessionOut]
    next_page_token: str | None = None


class SessionPatch(Request):
    visibility: str | None = None
    participants: list[UUID] | None = Field(default=None, max_length=1_000)
