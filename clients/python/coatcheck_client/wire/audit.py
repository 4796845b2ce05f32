"""What was done in a tenant, by whom."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from coatcheck_client.wire.base import Response


class AuditOut(Response):
    """One thing that was done. It names ids, never content."""

    audit_id: UUID
    principal_id: UUID | None
    delegation_id: UUID | None = None
    """By which delegation it was done in the principal's name; null where the principal's own key or token did it."""
    action: str
    target_kind: str
    target_id: str
    occurred_at: datetime


class AuditPage(Response):
    records: list[AuditOut]
    next_page_token: str | None = None
