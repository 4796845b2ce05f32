"""API keys as text: ``ck_<tenant>_<key id>_<secret>``, ids as 32 hex digits, the secret 256 random bits in base64url.

The tenant in a key is a claim: the key is looked up under that tenant's row security and proven by the secret.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from uuid import UUID

from coatcheck.domain.scopes import NIL

SECRET_BYTES = 32
MAX_HEADER_CHARS = 512
_KEY = re.compile(r"ck_(?P<tenant>[0-9a-f]{32})_(?P<key>[0-9a-f]{32})_(?P<secret>[A-Za-z0-9_-]{43})")
_BEARER = re.compile(r"bearer +(?P<token>[!-~]+) *", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class ApiKey:
    """One API key, whole. It has no representation, so that it cannot be logged by accident."""

    tenant_id: UUID
    key_id: UUID
    secret: str

    @property
    def text(self) -> str:
        """The key as its holder keeps it: shown once, when it is made."""
        return f"ck_{self.tenant_id.hex}_{self.key_id.hex}_{self.secret}"


def new_api_key(tenant_id: UUID, key_id: UUID) -> ApiKey:
    """A key with a fresh random secret."""
    return ApiKey(tenant_id, key_id, secrets.token_urlsafe(SECRET_BYTES))


def parse_api_key(text: str) -> ApiKey | None:
    """The key, or None where the text is not one. The nil UUID is no tenant's."""
    match = _KEY.fullmatch(text)
    if match is None or UUID(match["tenant"]) == NIL:
        return None
    return ApiKey(UUID(match["tenant"]), UUID(match["key"]), match["secret"])


def bearer_api_key(authorization: str | None) -> ApiKey | None:
    """The API key in an Authorization header, or None where there is no header, another scheme or no key."""
    if authorization is None or len(authorization) > MAX_HEADER_CHARS:
        return None
    match = _BEARER.fullmatch(authorization)
    return parse_api_key(match["token"]) if match else None
