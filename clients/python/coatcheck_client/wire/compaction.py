"""``POST /v1/compactions``: a window in, a handoff out."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from coatcheck_client.wire.base import AnyText, Focus, Moment, Request, Response, SessionName, WarningOut, Whole


class WindowIn(Request):
    """The middle of a conversation, in its provider's own format."""

    format: Literal["openai-chat", "openai-responses", "anthropic", "auto"] = "auto"
    messages: list[Any]
    system: Any = None
    times: list[Moment | None] | None = None


class CompactionRequest(Request):
    """``POST /v1/compactions``."""

    session: SessionName
    window: WindowIn
    visibility: str | None = None
    parent_manifest_id: UUID | None = None
    max_handoff_chars: Whole = Field(default=1_900, ge=600, le=4_000)
    focus: Focus | None = None


class HandoffOut(Response):
    text: AnyText
    chars: int
    sha256: str
    overview_source: Literal["generated", "excerpt"]
    message: dict[str, Any]


class TokenCount(Response):
    count: int
    counter: str
    estimated: bool


class WindowCounts(Response):
    messages: int
    parts: int
    chars: int
    tokens: TokenCount


class SegmentCounts(Response):
    total: int
    keep: int
    compress: int
    drop: int
    already_stored: int


class RedactionCounts(Response):
    total: int
    by_kind: dict[str, int]


class IndexCounts(Response):
    generation: int
    passages: int


class CompactionResponse(Response):
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
