"""Receipts of what was erased."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import ConfigDict

from coatcheck_client.wire.base import Response


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
