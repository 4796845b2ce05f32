"""Token issuers of the installation."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from coatcheck_client.wire.base import Request, Response
from coatcheck_client.wire.people import Issuer

Audience = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[\x21-\x7e]+$")]
KeySetUri = Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"^[\x21-\x7e]+$")]


class IssuerCreate(Request):
    """Whose tokens speak for a tenant: the caller's own, where none is named. One issuer speaks for one tenant."""

    issuer: Issuer
    jwks_uri: KeySetUri
    """Where its public keys are: https, and a public address unless the installation allows others."""
    audience: Audience
    """What its tokens must name in ``aud``."""
    tenant_id: UUID | None = None


class IssuerOut(Response):
    issuer: str
    tenant_id: UUID
    jwks_uri: str
    audience: str
    created_at: datetime


class IssuerPage(Response):
    issuers: list[IssuerOut]
    next_page_token: str | None = None
