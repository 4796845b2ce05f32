"""What authentication asks of the directory of credentials. The store's rows are adapted to it where the app is composed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from coatcheck.identity.doors import EVERY_DOOR, Door
from coatcheck.identity.operations import Role


@dataclass(frozen=True, slots=True)
class RightsRecord:
    """What is stored of a credential's rights: its own, its principal's, its tenant's and those of all that it was made with.

    What they allow is decided in ``identity.standing`` alone.
    """

    tenant_id: UUID
    principal_id: UUID
    role: Role
    principal_active: bool
    tenant_active: bool
    teams: frozenset[UUID]
    permission_revision: int
    own_revision: int
    operations: frozenset[str] | None
    """None, of a token's subject: whatever the role grants."""
    sessions: frozenset[UUID] | None
    expires_at: datetime | None
    revoked_at: datetime | None
    doors: frozenset[Door] = EVERY_DOOR


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """One API key or delegation: what its secret is proven by, and its rights."""

    key_id: UUID
    secret_hash: bytes
    key_version: int
    rights: RightsRecord


@dataclass(frozen=True, slots=True)
class IssuerRecord:
    """A token issuer: the one tenant that it speaks for, where its keys are, and for whom its tokens must be."""

    issuer: str
    tenant_id: UUID
    jwks_uri: str
    audience: str


class TokenDirectory(Protocol):
    """What tokens are looked up in. Every method raises StoreUnavailable."""

    async def find_issuer(self, issuer: str) -> IssuerRecord | None: ...

    async def find_subject(self, tenant_id: UUID, issuer: str, subject: str) -> RightsRecord | None:
        """Of whom an issuer that speaks for the tenant means by the subject."""
        ...


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
