"""Delegations: short-lived credentials for agents, always narrower than the one they are made with."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from coatcheck_client.wire.base import Label, Request, Response, Whole

DoorName = Literal["api", "mcp", "gateway"]
MAX_LIFE_S = 24 * 3_600


class DelegationCreate(Request):
    """``sessions`` left out: all that the maker's own credential reaches. ``audience``: the doors that will take it."""

    name: Label
    audience: Annotated[list[DoorName], Field(min_length=1, max_length=3)]
    operations: Annotated[list[str], Field(min_length=1, max_length=50)]
    sessions: Annotated[list[UUID] | None, Field(min_length=1, max_length=200)] = None
    expires_in_s: Annotated[Whole | None, Field(ge=1, le=MAX_LIFE_S)] = None
    """An hour where it is left out, or as long as the maker's own credential lasts."""


class DelegationOut(Response):
    delegation_id: UUID
    name: str
    principal_id: UUID
    parent_delegation_id: UUID | None
    depth: int
    """1 for what a key or a token made, 2 for what such a delegate made, and so on."""
    audience: list[DoorName]
    operations: list[str]
    sessions: list[UUID] | None
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    credential: str | None = None
    """The whole credential, shown once, in the answer that made it."""


class DelegationPage(Response):
    delegations: list[DelegationOut]
    next_page_token: str | None = None
