"""Who exists in a tenant: principals, teams, memberships."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from coatcheck_client.wire.base import Label, Request, Response

RoleInTenant = Literal["member", "operator"]
PrincipalStatus = Literal["active", "inactive"]
Issuer = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[\x21-\x7e]+$")]
"""A token issuer, to the letter as its tokens name it in ``iss``."""
Subject = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[\x20-\x7e]+$")]
"""What an issuer calls a principal in ``sub``; another issuer means somebody else by it."""


class PrincipalCreate(Request):
    """``issuer`` and ``subject`` go together: whose tokens speak for the principal."""

    name: Label
    role: RoleInTenant = "member"
    issuer: Issuer | None = None
    subject: Subject | None = None


class PrincipalPatch(Request):
    """What is left out stays. ``issuer`` and ``subject`` as null: no token speaks for the principal any more."""

    name: Label | None = None
    role: RoleInTenant | None = None
    status: PrincipalStatus | None = None
    issuer: Issuer | None = None
    subject: Subject | None = None


class PrincipalOut(Response):
    principal_id: UUID
    name: str
    role: RoleInTenant
    status: PrincipalStatus
    issuer: str | None
    subject: str | None
    teams: list[UUID]
    created_at: datetime


class PrincipalPage(Response):
    principals: list[PrincipalOut]
    next_page_token: str | None = None


class TeamCreate(Request):
    name: Label


class TeamOut(Response):
    team_id: UUID
    name: str
    members: int
    created_at: datetime


class TeamPage(Response):
    teams: list[TeamOut]
    next_page_token: str | None = None


class MembershipCreate(Request):
    team_id: UUID
    principal_id: UUID


class MembershipOut(Response):
    team_id: UUID
    principal_id: UUID
    created_at: datetime


class MembershipPage(Response):
    memberships: list[MembershipOut]
    next_page_token: str | None = None
