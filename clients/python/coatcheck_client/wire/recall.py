"""``POST /v1/recall``: a question in, exact segments out."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from coatcheck_client.wire.base import AnyText, Moment, Query, Request, Response, RoleName, SessionName, WarningOut, Whole


class RecallRequest(Request):
    """``POST /v1/recall``. ``session`` is a session's UUID or the caller's own name for one; null searches all it may read."""

    query: Query
    session: SessionName | None = None
    top_k: Whole = Field(default=5, ge=1, le=50)
    max_chars: Whole = Field(default=8_000, ge=200, le=200_000)
    representation: Literal["exact", "reduced"] = "exact"
    roles: list[RoleName] | None = Field(default=None, max_length=20)
    since: Moment | None = None
    until: Moment | None = None
    rerank: Literal["auto", "on", "off"] = "auto"


class Ranks(Response):
    """Positions from 1; null where the leg did not find the segment, or did not run."""

    dense: int | None = None
    lexical: int | None = None
    fused: int | None = None
    rerank: int | None = None


class SupersededBy(Response):
    """A later segment of the same session that takes back what this one says. A hint: the hit is shown all the same.

    ``reason`` is a sentence for a reader: who corrected it, when, about what and in which words. ``ordinal`` is the segment's
    entry in its manifest, which an older service does not say.
    """

    sha256: str
    manifest_id: UUID
    ordinal: int | None = None
    reason: str


class Place(Response):
    """Where a text stands."""

    session_id: UUID
    manifest_id: UUID
    ordinal: int
    occurred_at: datetime | None


class RecallHit(Response):
    """One text, where it was found best. The same text of other sessions is no other hit: ``places`` counts those found."""

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
    places: int = Field(default=1, ge=1)
    also_in: list[Place] = Field(default_factory=list)
    """The first ten of the other places, best first."""


class RecallResponse(Response):
    hits: list[RecallHit]
    rendered: AnyText
    legs: dict[str, str]
    """For each leg (dense, lexical, rerank): ``used``, ``off`` or why it was not used."""
    warnings: list[WarningOut] = Field(default_factory=list)
