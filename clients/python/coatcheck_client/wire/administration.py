"""Administration: jobs, keys, tenants, import; and the problem that any route may answer."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from coatcheck_client.wire.base import Flag, Label, Moment, Request, Response, WarningOut


class JobOut(Response):
    """A long operation: started by POST, followed by GET."""

    job_id: UUID
    kind: Literal["scan", "repair", "reconcile", "redact-rescan"]
    status: Literal["running", "done", "failed"]
    progress: dict[str, int]
    findings: list[FindingOut]
    findings_total: int
    error: str | None = None


class FindingOut(Response):
    """One thing that is not as it should be. ``kind`` is one of the named kinds of damage."""

    kind: str
    session_id: UUID | None
    sha256: str | None
    detail: str
    repaired: bool = False


class ScanRequest(Request):
    index: Flag = True


class RepairRequest(Request):
    index: Flag = True


class KeyCreate(Request):
    name: Label
    principal_id: UUID | None = None
    operations: list[str] | None = Field(default=None, max_length=100)
    sessions: list[UUID] | None = Field(default=None, max_length=1_000)
    expires_at: Moment | None = None


class KeyOut(Response):
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


class KeyPage(Response):
    keys: list[KeyOut]
    next_page_token: str | None = None


class TenantCreate(Request):
    name: Label


class TenantOut(Response):
    tenant_id: UUID
    name: str
    status: Literal["active", "suspended"]
    created_at: datetime
    key: str | None = None
    """The first operator's key, shown once, in the answer that made the tenant."""


class TenantPage(Response):
    tenants: list[TenantOut]


class ImportResponse(Response):
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
    errors: list[dict[str, str]] = Field(default_factory=list)


JobOut.model_rebuild()
