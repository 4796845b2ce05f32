"""What a tenant may take, and what it has stored."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

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
