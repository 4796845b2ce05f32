"""The request context: a verified caller's rights, built once for each request and passed explicitly."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from coatcheck.domain.actors import Actor
from coatcheck.domain.errors import Forbidden
from coatcheck.domain.scopes import PUBLIC, Scope, TenantScope, principal_key, team_key
from coatcheck.identity.doors import Door
from coatcheck.identity.operations import OPERATORS_CORE, Operation

LEEWAY = timedelta(seconds=30)
"""How far an issuer's clock and this one's may be apart."""


class CredentialKind(StrEnum):
    """What a caller has shown."""

    KEY = "key"
    DELEGATION = "delegation"
    TOKEN = "token"


@dataclass(frozen=True, slots=True)
class Credential:
    """What was verified. ``reference``: a key's or delegation's id, a token's issuer. What it makes ends with it."""

    kind: CredentialKind
    reference: str
    expires_at: datetime | None
    door: Door = Door.API
    """Which it was shown at."""
    subject: str = ""
    """Whom a token's issuer means."""
    scope: frozenset[str] | None = None
    """Of a token: to what it narrows its principal's rights, if to anything."""

    def is_over(self, now: datetime) -> bool:
        """Whether its time is: a token's by its issuer's clock, anything else's by this one."""
        by_its_clock = now - LEEWAY if self.kind is CredentialKind.TOKEN else now
        return self.expires_at is not None and self.expires_at <= by_its_clock


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Who asks, and what they may do. Only ``identity.standing`` makes one, of a credential that was verified."""

    tenant_id: UUID
    principal_id: UUID
    credential: Credential
    operations: frozenset[str]
    sessions: frozenset[UUID] | None
    """Where not None, the only sessions this credential reaches."""
    teams: frozenset[UUID]
    permission_revision: int
    """The tenant's, when the rights were read: it rises with every change of a key, a principal or a membership."""
    own_revision: int
    """The same of the principal alone: it rises with what concerns its rights."""

    @property
    def scope(self) -> Scope:
        """What this caller may read: its own, its teams' and the tenant's public sessions."""
        teams = tuple(team_key(team) for team in sorted(self.teams))
        return Scope(self.tenant_id, self.principal_id, (principal_key(self.principal_id), *teams, PUBLIC))

    @property
    def tenant_scope(self) -> TenantScope:
        """The caller's tenant, whole: for what a use case does after it has authorised the caller for it."""
        return TenantScope(self.tenant_id)

    @property
    def actor(self) -> Actor:
        """Who the audit says did it."""
        by_delegation = self.credential.kind is CredentialKind.DELEGATION
        return Actor(self.principal_id, UUID(self.credential.reference) if by_delegation else None)

    @property
    def is_operator(self) -> bool:
        """Whether the credential grants all that an operator's is made of; no delegate's does."""
        return self.operations >= OPERATORS_CORE

    def require(self, operation: Operation) -> None:
        """Raises Forbidden unless the credential grants the operation."""
        if operation not in self.operations:
            raise Forbidden(f"The credential does not grant the operation {operation}.")

    def require_for_tenant(self, operation: Operation) -> None:
        """As ``require``, for what concerns the tenant as a whole: not for a credential that is kept to some sessions."""
        self.require(operation)
        if self.sessions is not None:
            raise Forbidden("The credential is kept to some sessions.")

    def covers(self, other: RequestContext) -> bool:
        """Whether this caller is the other, and may still do all that the other could."""
        same = (self.tenant_id, self.principal_id) == (other.tenant_id, other.principal_id)
        as_far = self.sessions is None or (other.sessions is not None and self.sessions >= other.sessions)
        return same and as_far and self.operations >= other.operations and self.teams >= other.teams

    def reaches(self, session_id: UUID) -> bool:
        """Whether the credential is not kept to other sessions than this one; reading still needs the scope."""
        return self.sessions is None or session_id in self.sessions
