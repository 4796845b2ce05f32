"""The contract as types: every body that goes over the wire, shared by the service and the SDK.

Texts that may hold what PostgreSQL and pydantic refuse (lone surrogates, NUL) are ``AnyText``. Bounds stand here, once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema


def _any_str(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a string is needed")
    return value


AnyText = Annotated[str, PlainValidator(_any_str), WithJsonSchema({"type": "string"})]
"""A string of any code points, lone surrogates and NUL included."""

SessionName = Annotated[str, Field(min_length=1, max_length=200)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FormatName = Literal["openai-chat", "openai-responses", "anthropic"]
RoleName = Literal["system", "developer", "user", "assistant", "tool"]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Response(BaseModel):
    model_config = ConfigDict(extra="ignore")


# --- compaction


class WindowIn(_Request):
    """The middle of a conversation, in its provider's own format."""

    format: Literal["openai-chat", "openai-responses", "anthropic", "auto"] = "auto"
    messages: list[Any]
    system: Any = None
    times: list[datetime | None] | None = None


class CompactionRequest(_Request):
    """``POST /v1/compactions``."""

    session: SessionName
    window: WindowIn
    visibility: str | None = None
    parent_manifest_id: UUID | None = None
    max_handoff_chars: int = Field(default=1_900, ge=600, le=4_000)
    focus: str | None = Field(default=None, max_length=300)


class HandoffOut(_Response):
    text: AnyText
    chars: int
    sha256: str
    overview_source: Literal["generated", "excerpt"]
    message: dict[str, Any]


class TokenCount(_Response):
    count: int
    counter: str
    estimated: bool


class WindowCounts(_Response):
    messages: int
    parts: int
    chars: int
    tokens: TokenCount


class SegmentCounts(_Response):
    total: int
    keep: int
    compress: int
    drop: int
    already_stored: int


class RedactionCounts(_Response):
    total: int
    by_kind: dict[str, int]


class IndexCounts(_Response):
    generation: int
    passages: int


class WarningOut(_Response):
    code: str
    detail: str


class CompactionResponse(_Response):
    """201, or 200 for a completed duplicate, with the same body."""

    manifest_id: UUID
    session_id: UUID
    parent_manifest_id: UUID | None
    handoff: HandoffOut
    window: WindowCounts
    segments: SegmentCounts
    redactions: RedactionCounts
    index: IndexCounts
    warnings: list[WarningOut]
    timings_ms: dict[str, int]


# --- recall


class RecallRequest(_Request):
    """``POST /v1/recall``. ``session`` is a session's UUID or the caller's own name for one; null searches all it may read."""

    query: str = Field(min_length=1, max_length=4_000)
    session: SessionName | None = None
    top_k: int = Field(default=5, ge=1, le=50)
    max_chars: int = Field(default=8_000, ge=200, le=200_000)
    representation: Literal["exact", "reduced"] = "exact"
    roles: list[RoleName] | None = None
    since: datetime | None = None
    until: datetime | None = None
    rerank: Literal["auto", "on", "off"] = "auto"


class Ranks(_Response):
    """Positions from 1; null where the leg did not find the segment, or did not run."""

    dense: int | None = None
    lexical: int | None = None
    fused: int | None = None
    rerank: int | None = None


class SupersededBy(_Response):
    sha256: str
    manifest_id: UUID
    reason: str


class RecallHit(_Response):
    sha256: str
    text: AnyText
    truncated: bool
    representation: Literal["exact", "reduced"]
    role: str
    kind: str
    session_id: UUID
    manifest_id: UUID
    ordinal: int
    occurred_at: datetime | None
    stored_at: datetime
    ranks: Ranks
    superseded_by: SupersededBy | None = None


class RecallResponse(_Response):
    hits: list[RecallHit]
    rendered: AnyText
    legs: dict[str, str]
    """For each leg (dense, lexical, rerank): ``used``, ``off`` or why it was not used."""
    warnings: list[WarningOut] = []


# --- reading


class ManifestOut(_Response):
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


class EntryOut(_Response):
    ordinal: int
    message_index: int
    part_index: int
    segment_index: int
    role: str
    kind: str
    route: Literal["keep", "compress", "drop"]
    reason: str
    protection: str | None
    sha256: str | None
    reduced_sha256: str | None
    blob_sha256: str | None
    handoff_manifest_id: UUID | None
    call_id: str | None
    group_id: str | None
    name: AnyText | None
    occurred_at: datetime | None
    chars: int
    text: AnyText | None = None


class EntryPage(_Response):
    entries: list[EntryOut]
    next_page_token: str | None = None


class WindowOut(_Response):
    """The redacted window in the format it came in."""

    format: FormatName
    system: Any = None
    messages: list[Any]


class SegmentOut(_Response):
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


class SessionOut(_Response):
    session_id: UUID
    name: str
    owner_id: UUID
    visibility: str
    participants: list[UUID]
    created_at: datetime
    manifests: int
    segments: int


class SessionPage(_Response):
    sessions: list[SessionOut]
    next_page_token: str | None = None


class SessionPatch(_Request):
    visibility: str | None = None
    participants: list[UUID] | None = None


# --- administration


class JobOut(_Response):
    """A long operation: started by POST, followed by GET."""

    job_id: UUID
    kind: Literal["scan", "repair", "reconcile", "redact-rescan"]
    status: Literal["running", "done", "failed"]
    progress: dict[str, int]
    findings: list[FindingOut]
    findings_total: int
    error: str | None = None


class FindingOut(_Response):
    """One thing that is not as it should be. ``kind`` is one of the named kinds of damage."""

    kind: str
    session_id: UUID | None
    sha256: str | None
    detail: str
    repaired: bool = False


class ScanRequest(_Request):
    index: bool = True


class RepairRequest(_Request):
    index: bool = True


class KeyCreate(_Request):
    name: str = Field(min_length=1, max_length=100)
    principal_id: UUID | None = None
    operations: list[str] | None = None
    sessions: list[UUID] | None = None
    expires_at: datetime | None = None


class KeyOut(_Response):
    key_id: UUID
    name: str
    principal_id: UUID
    operations: list[str]
    sessions: list[UUID] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    key: str | None = None
    """The whole key, shown once, in the answer that made it."""


class KeyPage(_Response):
    keys: list[KeyOut]
    next_page_token: str | None = None


class TenantCreate(_Request):
    name: str = Field(min_length=1, max_length=100)


class TenantOut(_Response):
    tenant_id: UUID
    name: str
    status: Literal["active", "suspended"]
    created_at: datetime
    key: str | None = None
    """The first operator's key, shown once, in the answer that made the tenant."""


class TenantPage(_Response):
    tenants: list[TenantOut]


class ImportResponse(_Response):
    sessions: int
    manifests: int
    segments: int
    skipped: int
    warnings: list[WarningOut]


class Problem(BaseModel):
    """RFC 9457 ``application/problem+json``."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    instance: str
    retryable: bool
    errors: list[dict[str, str]] = []


JobOut.model_rebuild()
