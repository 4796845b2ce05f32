"""``/v1/cache``: answers that may be reused, by whoever asks under the very same circumstances."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from coatcheck_client.wire.base import AnyText, Flag, Number, Request, Response, SessionName

MAX_SOURCES = 500


class SourceIn(Request):
    """Something an answer rests on. Without its revision it is not known, and the cache is bypassed."""

    id: str = Field(min_length=1, max_length=500)
    revision: str | None = Field(default=None, min_length=1, max_length=500)


class CacheCircumstances(Request):
    """Under what an answer is produced. Null or absent is *unknown*, and bypasses; an empty value says that there is none."""

    session: SessionName | Literal[""] | None = None
    """A session's UUID or the caller's own name of a conversation; empty: the answer belongs to none."""
    conversation_revision: str | None = Field(default=None, min_length=1, max_length=500)
    """The caller's own revision of it. Of a session that is kept here, the service adds what it knows itself."""
    sources: list[SourceIn] | None = Field(default=None, max_length=MAX_SOURCES)
    model: str | None = Field(default=None, min_length=1, max_length=500)
    instructions: AnyText | list[Any] | None = None
    """What stands before the prompt: a text, or messages."""
    tools: list[Any] | None = None
    settings: dict[str, Any] | None = None
    """The generation settings: temperature, response format, whatever changes an answer."""
    sharing: str = "principal"
    """``principal``, ``team:<id>`` or ``tenant``."""
    prompt: AnyText | list[Any]
    """The final prompt: a text, or messages."""
    semantic: Flag = False
    """Whether the prompt may also be compared by meaning, where the service allows it."""


class CacheLookup(CacheCircumstances):
    """``POST /v1/cache/lookup``."""


class CacheStore(CacheCircumstances):
    """``POST /v1/cache/store``."""

    answer: AnyText | dict[str, Any] | list[Any]
    scope: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """``scope`` of the look-up that came before the answer: what has changed since then makes the answer nobody's."""
    ttl_s: Number | None = Field(default=None, gt=0, le=31_536_000)


class CacheProvenance(Response):
    """Where a reused answer comes from."""

    entry_id: UUID
    match: Literal["exact", "semantic"]
    similarity: float
    sharing: str
    stored_at: datetime
    age_s: float
    expires_at: datetime


class CacheLookupOut(Response):
    """The answer to a look-up. ``answer`` is data: what was stored, as it was stored."""

    outcome: Literal["hit-exact", "hit-semantic", "miss", "ineligible", "bypassed"]
    reason: str | None = None
    """Bypassed: what is unknown, ``off`` or ``unavailable``. Ineligible: the dimension in which the caller's own entries for this
    prompt differ, or ``scope`` where its scope holds nothing at all. Miss: ``other-prompt``, ``dissimilar``, ``guard`` or
    ``no-embedder``."""
    eligible: int | None = None
    """Of a miss: how many entries the scope could have reused; nothing else was compared."""
    answer: Any = None
    provenance: CacheProvenance | None = None
    scope: str | None = None
    """To be handed back with the answer that is generated now. Null where the cache was bypassed."""


class CacheStoreOut(Response):
    stored: bool
    reason: str | None = None
    """Why not: what is unknown, ``off``, ``unavailable``, ``scope``, ``scope-changed``, ``secret``, ``too-large`` or ``quota``."""
    entry_id: UUID | None = None
    expires_at: datetime | None = None


class CachePurge(Request):
    """``POST /v1/cache/purge``. All that is named must hold; an operator may name a principal's entries, or the tenant's."""

    whose: Literal["own", "principal", "tenant"] = "own"
    principal_id: UUID | None = None
    session: SessionName | None = None
    source: str | None = Field(default=None, min_length=1, max_length=500)


class CacheStatsOut(Response):
    """``GET /v1/cache``: what the caller's own answers, or the tenant's, come to."""

    enabled: bool
    semantic: bool
    entries: int
    answer_bytes: int
    oldest_at: datetime | None


class CachePurgeOut(Response):
    purged: int
