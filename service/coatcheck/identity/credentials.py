"""Credentials with a secret, as text: ``ck_<tenant>_<id>_<secret>`` for an API key, ``cd_...`` for a delegation.

Ids are 32 hex digits, the secret is 256 random bits in base64url. The tenant in a credential is a claim: it is looked up under
that tenant's row security and proven by the secret.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from uuid import UUID

from coatcheck.domain.scopes import NIL
from coatcheck.identity.context import CredentialKind

SECRET_BYTES = 32
MAX_HEADER_CHARS = 512
MAX_TOKEN_CHARS = 8_192
"""Looked at before anything of a token is parsed."""
_PREFIXES = {CredentialKind.KEY: "ck", CredentialKind.DELEGATION: "cd"}
_KEY = re.compile(r"(?P<prefix>c[kd])_(?P<tenant>[0-9a-f]{32})_(?P<key>[0-9a-f]{32})_(?P<secret>[A-Za-z0-9_-]{43})")
_SIGNED = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_BEARER = re.compile(r"bearer +(?P<token>[!-~]+) *", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class ApiKey:
    """One API key or delegation, whole. It has no representation, so that it cannot be logged by accident."""

    tenant_id: UUID
    key_id: UUID
    secret: str
    kind: CredentialKind = CredentialKind.KEY

    @property
    def text(self) -> str:
        """The key as its holder keeps it: shown once, when it is made."""
        return f"{_PREFIXES[self.kind]}_{self.tenant_id.hex}_{self.key_id.hex}_{self.secret}"


def new_api_key(tenant_id: UUID, key_id: UUID, kind: CredentialKind = CredentialKind.KEY) -> ApiKey:
    """A key or delegation with a fresh random secret."""
    return ApiKey(tenant_id, key_id, secrets.token_urlsafe(SECRET_BYTES), kind)


def parse_api_key(text: str) -> ApiKey | None:
    """The key, or None where the text is not one. The nil UUID is no tenant's."""
    match = _KEY.fullmatch(text)
    if match is None or UUID(match["tenant"]) == NIL:
        return None
    kind = CredentialKind.KEY if match["prefix"] == _PREFIXES[CredentialKind.KEY] else CredentialKind.DELEGATION
    return ApiKey(UUID(match["tenant"]), UUID(match["key"]), match["secret"], kind)


def bearer_token(authorization: str | None) -> str | None:
    """The token in an Authorization header, when it has the form of a signed token and is no longer than one may be."""
    if authorization is None or len(authorization) > MAX_TOKEN_CHARS:
        return None
    match = _BEARER.fullmatch(authorization)
    return match["token"] if match and _SIGNED.fullmatch(match["token"]) else None


def bearer_api_key(authorization: str | None) -> ApiKey | None:
    """The API key in an Authorization header, or None where there is no header, another scheme or no key."""
    if authorization is None or len(authorization) > MAX_HEADER_CHARS:
        return None
    match = _BEARER.fullmatch(authorization)
    return parse_api_key(match["token"]) if match else None
