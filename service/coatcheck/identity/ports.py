"""What authentication asks of the directory of credentials. The store's rows are adapted to it where the app is composed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from coatcheck.identity.doors import EVERY_DOOR, Door
from coatcheck.identity.operations import Role


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """One API key or delegation as stored, with what its principal, its tenant and all that it was made with allow now."""

    tenant_id: UUID
    key_id: UUID
    principal_id: UUID
    secret_hash: bytes
    key_version: int
    operations: frozenset[str]
    sessions: frozenset[UUID] | None
    expires_at: datetime | None
    revoked_at: datetime | None
    role: Role
    principal_active: bool
    tenant_active: bool
    teams: frozenset[UUID]
    permission_revision: int
    own_revision: int
    doors: frozenset[Door] = EVERY_DOOR


@dataclass(frozen=True, slots=True)
class IssuerRecord:
    """A token issuer: the one tenant that it speaks for, where its keys are, and for whom its tokens must be."""

    issuer: str
    tenant_id: UUID
    jwks_uri: str
    audience: str


@dataclass(frozen=True, slots=True)
class SubjectRecord:
    """Whom an issuer means by a subject, with what the principal and its tenant allow now."""

    principal_id: UUID
    role: Role
    principal_active: bool
    tenant_active: bool
    teams: frozenset[UUID]
    permission_revision: int
    own_revision: int


class TokenDirectory(Protocol):
    """What tokens are looked up in. Every method raises StoreUnavailable."""

    async def find_issuer(self, issuer: str) -> IssuerRecord | None: ...

    async def find_subject(self, tenant_id: UUID, issuer: str, subject: str) -> SubjectRecord | None: ...


class Fetch(Protocol):
    """Gets a small document. Raises OutboundFailed, OutboundRefused."""

    async def __call__(self, url: str) -> bytes: ...


class KeyDirectory(Protocol):
    async def find_key(self, tenant_id: UUID, key_id: UUID) -> KeyRecord | None:
        """The key under the tenant it claims, or None. Asks the database the same way whether there is one or not.

        Raises StoreUnavailable.
        """
        ...

    async def find_delegation(self, tenant_id: UUID, delegation_id: UUID) -> KeyRecord | None:
        """As ``find_key``, of a delegation: revoked when anything above it is, expired when the first of them is."""
        ...
