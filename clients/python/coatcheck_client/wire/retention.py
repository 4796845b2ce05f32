"""For how long sessions are kept, by kind."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from coatcheck_client.wire.base import Request, Whole

Days = Annotated[Whole, Field(ge=1, le=36_500)]


class RetentionPolicy(Request):
    """The most days that sessions of a kind are kept after the last thing was added; null is until somebody erases them."""

    conversation: Days | None = None
    personal: Days | None = None
    team: Days | None = None
    public: Days | None = None
