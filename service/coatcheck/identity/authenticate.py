"""From an Authorization header to a request context.

No credential, a malformed one, an unknown key, a wrong secret, a revoked or expired key, an inactive principal or tenant: one
answer, after the same work. Only what is no credential at all is spared the directory, so that strangers cannot make it work.
"""

from __future__ import annotations

import hmac
import secrets
from uuid import UUID

from coatcheck.domain.errors import Unauthenticated
from coatcheck.domain.ports import Clock
from coatcheck.identity.context import Credential, CredentialKind, RequestContext
from coatcheck.identity.credentials import ApiKey, new_api_key
from coatcheck.identity.credentials import bearer_api_key as read_bearer
from coatcheck.identity.credentials import bearer_token as read_token
from coatcheck.identity.doors import Door
from coatcheck.identity.keyring import KEY_BYTES, Keyring
from coatcheck.identity.ports import KeyDirectory, KeyRecord
from coatcheck.identity.standing import context_of
from coatcheck.identity.tokens import TokenVerifier


class Authenticator:
    """Verifies credentials. Nothing is remembered between requests: a revoked key is refused at once."""

    def __init__(self, directory: KeyDirectory, keyring: Keyring, clock: Clock, tokens: TokenVerifier | None = None) -> None:
        self._directory = directory
        self._keyring = keyring
        self._clock = clock
        self._tokens = tokens
        self._nobody = new_api_key(UUID(int=1), UUID(int=1))
        self._no_hash = secrets.token_bytes(KEY_BYTES)

    async def authenticate(self, authorization: str | None, door: Door = Door.API) -> RequestContext:
        """The caller's context. Raises Unauthenticated, always with the same detail, StoreUnavailable and IssuerUnavailable."""
        token = read_token(authorization)
        if token is not None and self._tokens is not None:
            return await self._tokens.context_of(token, door)
        presented = read_bearer(authorization)
        record = None
        if presented is not None:
            look_up = self._directory.find_key if presented.kind is CredentialKind.KEY else self._directory.find_delegation
            record = await look_up(presented.tenant_id, presented.key_id)
        proven = self._proves(presented or self._nobody, record)
        if record is None or presented is None or not proven:
            raise Unauthenticated
        return context_of(Credential(presented.kind, str(record.key_id), None, door), record.rights, self._clock())

    def _proves(self, presented: ApiKey, record: KeyRecord | None) -> bool:
        """Whether the secret is the stored one; without a record the same HMAC and comparison against a random hash."""
        held = record is not None and self._keyring.has_version(record.key_version)
        version = record.key_version if record is not None and held else None
        hashed = self._keyring.key_hash(presented.tenant_id, presented.secret, version)
        same = hmac.compare_digest(hashed, record.secret_hash if record is not None else self._no_hash)
        # A directory that answered for another tenant or key than was asked would be a fault of ours: it proves nothing.
        asked = record is not None and (record.rights.tenant_id, record.key_id) == (presented.tenant_id, presented.key_id)
        return same & held & asked
