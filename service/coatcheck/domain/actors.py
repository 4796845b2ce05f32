"""Who did something, for the audit."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Actor:
    """A principal, and the delegation by which something else did it in that one's name. Neither: the service itself."""

    principal_id: UUID | None
    delegation_id: UUID | None = None


THE_SERVICE = Actor(None)
