"""A session: the caller's conversation, whose owner and visibility decide who reads and who writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from coatcheck.domain.errors import InvalidRequest
from coatcheck.domain.scopes import PUBLIC, kind_or_team, principal_key, team_key


@dataclass(frozen=True, slots=True)
class Visibility:
    """``conversation`` (owner and named participants), ``personal`` (owner), ``team`` (members), ``public`` (the tenant)."""

    kind: str
    team_id: UUID | None = None

    @classmethod
    def parse(cls, text: str) -> Visibility:
        """Raises InvalidRequest on anything but ``conversation | personal | team:<uuid> | public``."""
        found = kind_or_team(text, ("conversation", "personal", "public"))
        if found is None:
            raise InvalidRequest("A visibility is conversation, personal, team:<team id> or public.")
        return cls(*found)

    def __str__(self) -> str:
        return f"team:{self.team_id}" if self.team_id else self.kind

    def readers(self, owner_id: UUID, participants: tuple[UUID, ...]) -> tuple[str, ...]:
        """The acl keys that may read."""
        keys = list(self.writers(owner_id, participants))
        if self.kind == "public":
            keys.append(PUBLIC)
        return tuple(keys)

    def writers(self, owner_id: UUID, participants: tuple[UUID, ...]) -> tuple[str, ...]:
        """The acl keys that may add to the session."""
        keys = [principal_key(owner_id)]
        if self.kind == "conversation":
            keys += [principal_key(p) for p in participants if p != owner_id]
        if self.team_id is not None:
            keys.append(team_key(self.team_id))
        return tuple(keys)


@dataclass(frozen=True, slots=True)
class Session:
    """One session as stored. ``name`` is the caller's own, unique for one owner among the sessions not erased."""

    session_id: UUID
    name: str
    owner_id: UUID
    visibility: Visibility
    acl: tuple[str, ...]
    writers: tuple[str, ...]
    participants: tuple[UUID, ...]
    created_at: datetime
    erased_at: datetime | None = None
