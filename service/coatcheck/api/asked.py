"""What the edge found out about a request before anything else looked at it. It travels in the ASGI scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from uuid import UUID

from starlette.types import Scope

from coatcheck.identity.context import RequestContext

_KEY = "coatcheck.asked"


@dataclass(slots=True)
class Asked:
    """One request: its id from the start, its caller and deadline once the edge has let it through."""

    request_id: UUID
    context: RequestContext | None = None
    deadline_s: float = 0.0


def put(scope: Scope, asked: Asked) -> None:
    scope[_KEY] = asked


def asked_of(scope: Scope) -> Asked:
    """Raises KeyError where no edge stands in front."""
    return cast(Asked, scope[_KEY])
