"""What a tenant may take, for how long it keeps, and what was erased of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from coatcheck_client.wire.base import Number, Request, Response, Whole

Rate = Annotated[Number, Field(ge=1e-6, le=1e12, allow_inf_nan=False)]
"""For a minute. One that is smaller still is a lock-out by another name, and its arithmetic leaves the numbers."""
Count = Annotated[Whole, Field(ge=0, le=2**62)]


class TenantLimits(Request):
    """A tenant's own limits, all of them: what is null is the installation's default."""

    requests_per_minute: Rate | None = None
    bytes_per_minute: Rate | None = None
    """Of request bodies."""
    embedding_seconds_per_minute: Rate | None = None
    """Of the embedder's and the reranker's work for the tenant."""
    max_segments: Count | None = None
    max_bytes: Count | None = None
    """Of stored segments and blobs."""


class UsageOut(Response):
    """What a tenant has stored."""

    segments: int
    bytes: int


class TenantLimitsOut(Response):
    """``own`` is what was set for the tenant; ``effective`` what counts, null where there is no limit."""

    tenant_id: UUID
    own: TenantLimits
    effective: TenantLimits
    stored: UsageOut


class ErasureOut(Response):
    """An erasure's receipt: ids, counts and times, never content. Once complete, ``tag`` covers all of it but ``status``."""

    erasure_id: UUID
    tenant_id: UUID
    kind: Literal["session", "manifest", "tenant"]
    target_id: UUID
    """The session, manifest or tenant that was erased."""
    session_id: UUID | None
    reason: Literal["request", "retention", "off-boarding", "restore"]
    requested_by: UUID | None
    """The principal on whose word; null where the service did it for its reason."""
    requested_at: datetime
    completed_at: datetime | None
    status: Literal["pending", "complete"]
    counts: dict[str, int]
    """Rows by kind, index points, cached answers, handoffs rendered again and the lines they lost."""
    journal_mac: str | None
    """The HMAC of this erasure's line in the erasure journal."""
    key_version: int | None
    tag: str | None


class ReceiptIn(ErasureOut):
    """A receipt to be verified, as it was given out."""

    model_config = ConfigDict(extra="forbid")


class VerifiedOut(Response):
    """Whether a receipt is this service's, as it stands."""

    valid: bool


Days = Annotated[Whole, Field(ge=1, le=36_500)]


class RetentionPolicy(Request):
    """The most days that sessions of a kind are kept after the last thing was added; null is until somebody erases them."""

    conversation: Days | None = None
    personal: Days | None = None
    team: Days | None = None
    public: Days | None = None
