"""The response cache's values: under what an answer was produced, who may reuse it, and why a look-up found nothing.

Eligibility comes first: an entry may be reused only where every dimension of its scope equals the asker's. A ``CacheScope`` has
no field that may be missing, so that a look-up without a scope, or with half of one, cannot be written down. Only
``coatcheck.identity`` makes one, from a verified context and circumstances that are known.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import NewType
from uuid import UUID

from coatcheck.domain.canonical import JsonObject, JsonValue
from coatcheck.domain.errors import InvalidRequest
from coatcheck.domain.scopes import PUBLIC, Scope, kind_or_team, principal_key, team_key

CACHE_SCHEMA = 1
"""Part of every scope: raise it when what an entry means changes, and every older entry is out of reach."""

Fingerprint = NewType("Fingerprint", str)
"""A keyed digest of a canonical value, 64 hex digits; comparable within one tenant, and never a right to anything."""

FINGERPRINT_DIGITS = 64


class Dimension(StrEnum):
    """What must be equal before anything is compared, in the order in which a difference is reported."""

    SHARING = "sharing"
    CONVERSATION = "conversation"
    PERMISSION = "permission"
    SOURCES = "sources"
    MODEL = "model"
    INSTRUCTIONS = "instructions"
    TOOLS = "tools"
    SETTINGS = "settings"
    SCHEMA = "schema"


@dataclass(frozen=True, slots=True)
class Sharing:
    """Who may reuse an answer: its ``principal`` alone, the members of a ``team``, or everyone in the ``tenant``."""

    kind: str
    team_id: UUID | None = None

    @classmethod
    def parse(cls, text: str) -> Sharing:
        """Raises InvalidRequest on anything but ``principal | team:<uuid> | tenant``."""
        found = kind_or_team(text, ("principal", "tenant"))
        if found is None:
            raise InvalidRequest("A sharing scope is principal, team:<team id> or tenant.")
        return cls(*found)

    def __str__(self) -> str:
        return f"team:{self.team_id}" if self.team_id else self.kind

    @property
    def is_private(self) -> bool:
        return self.kind == "principal"

    def acl_key(self, principal_id: UUID) -> str:
        """The acl key that reads such an entry of this principal's."""
        if self.team_id is not None:
            return team_key(self.team_id)
        return PUBLIC if self.kind == "tenant" else principal_key(principal_id)


@dataclass(frozen=True, slots=True)
class Stated:
    """What is said of an answer's circumstances. None is unknown; an empty value says that there is none of it."""

    conversation: JsonValue
    sources: JsonValue
    model: JsonValue
    instructions: JsonValue
    tools: JsonValue
    settings: JsonValue


@dataclass(frozen=True, slots=True)
class Dimensions:
    """One fingerprint for each dimension; two scopes are one where all of them are equal."""

    sharing: Fingerprint
    conversation: Fingerprint
    permission: Fingerprint
    sources: Fingerprint
    model: Fingerprint
    instructions: Fingerprint
    tools: Fingerprint
    settings: Fingerprint
    schema: Fingerprint

    def __post_init__(self) -> None:
        if any(len(value) != FINGERPRINT_DIGITS for value in self.as_json().values() if isinstance(value, str)):
            raise ValueError("a dimension is a fingerprint")

    def as_json(self) -> JsonObject:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def first_difference(self, other: Dimensions) -> Dimension | None:
        """The first dimension in which the other differs; None where it is the same scope."""
        return next((one for one in Dimension if getattr(self, one.value) != getattr(other, one.value)), None)


@dataclass(frozen=True, slots=True)
class Ties:
    """What takes an entry along when it goes: the conversation's session, and what can be purged by name."""

    session_id: UUID | None
    sessions: tuple[UUID, ...]
    """Every session of ours that the answer rests on, its conversation's among them: in order, to be shared while it is stored."""
    tags: tuple[Fingerprint, ...]


@dataclass(frozen=True, slots=True)
class CacheScope:
    """Everything that makes an entry eligible. Who may read a row at all is ``within`` and the row's acl, as for all rows."""

    within: Scope
    sharing: Sharing
    dimensions: Dimensions
    digest: Fingerprint
    """Of all dimensions together: what a row is found by, and what a caller hands back to store its answer."""
    ties: Ties

    def __post_init__(self) -> None:
        if self.acl_key not in self.within.acl:
            raise ValueError("a cache scope is one that its principal reads")

    @property
    def acl_key(self) -> str:
        return self.sharing.acl_key(self.within.principal_id)


@dataclass(frozen=True, slots=True)
class PromptPrint:
    """A prompt as it is compared. The last three are there where it may be compared by meaning, too."""

    exact: Fingerprint
    frame: Fingerprint | None = None
    """Of everything but the closing text: equal, or nothing is compared."""
    guard: Fingerprint | None = None
    """Of the closing text's normal form: equal, or no similarity counts."""
    text: str | None = None
    """The closing text without its secrets: embedded, never stored."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An answer that may be reused."""

    entry_id: UUID
    answer: bytes
    created_at: datetime
    expires_at: datetime
