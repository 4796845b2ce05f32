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
    """Of the whole window as it came, after redaction.

    ``chars`` are the code points of its text, each place counted: what was said, thought, called with and returned, earlier
    handoffs among it. Names, ids and encoded binary content are no text. ``sizes.text_chars`` counts the same before
    redaction.
    """

    messages: int
    parts: int
    chars: int
    tokens: TokenCount


class SegmentCounts(Response):
    """The distinct texts that the window was cut into, each counted once however often it stands there.

    An earlier handoff is none. ``already_stored`` are those of them that the session held before.
    """

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
