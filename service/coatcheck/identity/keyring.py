"""Keys derived from the root key, one for each tenant and purpose (HKDF-SHA256, RFC 5869), with a version.

A rotation adds a version: new tags, digests and hashes are made under it, earlier versions verify what they made.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from enum import StrEnum
from typing import NoReturn
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.identity.cursor import Cursor
from coatcheck.identity.fingerprints import Fingerprints

_SALT = b"coatcheck keyring 1"
KEY_BYTES = 32


class Purpose(StrEnum):
    """What a derived key is for. A value never changes: it is part of the derivation."""

    PLACEHOLDER = "placeholder"
    SESSION_PLACEHOLDER = "session-placeholder"
    REQUEST = "request"
    SEGMENT = "segment"
    API_KEY = "api-key"
    CURSOR = "cursor"
    CACHE_SALT = "cache-salt"
    JOURNAL = "journal"
    RECEIPT = "receipt"
    FINGERPRINT = "fingerprint"
    RESPONSE_CACHE = "response-cache"


class Keyring:
    """Derives keys; holds the root key and shows it nowhere."""

    __slots__ = ("_roots", "version")

    def __init__(self, root: bytes, *, version: int = 1, previous: Mapping[int, bytes] | None = None) -> None:
        self.version = version
        self._roots = {**(previous or {}), version: root}
        if any(len(key) != KEY_BYTES for key in self._roots.values()):
            raise ValueError("a root key has 32 bytes")

    def __repr__(self) -> str:
        return f"Keyring(version={self.version})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a keyring is not to be copied out of its process")

    def fingerprint(self) -> str:
        """What is stored of the current root key, to recognise it by: 32 hex digits that tell nothing else."""
        return self._derive(Purpose.FINGERPRINT, b"")[:16].hex()

    def placeholder_keys(self, tenant_id: UUID, session_id: UUID) -> PlaceholderKeys:
        return PlaceholderKeys(
            tenant_key=self._derive(Purpose.PLACEHOLDER, tenant_id.bytes),
            session_key=self._derive(Purpose.SESSION_PLACEHOLDER, tenant_id.bytes + session_id.bytes),
        )

    @property
    def versions(self) -> list[int]:
        """The newest first."""
        return sorted(self._roots, reverse=True)

    def request_digest(self, tenant_id: UUID, raw: bytes, version: int | None = None) -> str:
        """The keyed digest of a request (or of an idempotency key), 64 hex digits."""
        return hmac.new(self._derive(Purpose.REQUEST, tenant_id.bytes, version), raw, hashlib.sha256).hexdigest()

    def segment_tag(self, tenant_id: UUID, sha256: str, version: int | None = None) -> str:
        """What is kept of an erased segment's hash: 64 hex digits that nobody without the key can compare with a guess."""
        return hmac.new(self._derive(Purpose.SEGMENT, tenant_id.bytes, version), sha256.encode(), hashlib.sha256).hexdigest()

    def key_hash(self, tenant_id: UUID, secret: str, version: int | None = None) -> bytes:
        """What is stored of an API key's secret: 32 bytes. Raises LookupError for a version that is not here."""
        key = self._derive(Purpose.API_KEY, tenant_id.bytes, version)
        return hmac.new(key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()

    def has_version(self, version: int) -> bool:
        return version in self._roots

    def cache_salt(self, tenant_id: UUID) -> str:
        """What an upstream model server may know of a tenant, to keep its prefix caches apart: 64 hex digits."""
        return self._derive(Purpose.CACHE_SALT, tenant_id.bytes).hex()

    def cursor(self, tenant_id: UUID) -> Cursor:
        """Signs and verifies page tokens within one tenant."""
        return Cursor(*(self._derive(Purpose.CURSOR, tenant_id.bytes, version) for version in self.versions))

    def cache_fingerprints(self, tenant_id: UUID) -> Fingerprints:
        """Makes the response cache's fingerprints within one tenant. A rotation makes every older entry ineligible."""
        return Fingerprints(self._derive(Purpose.RESPONSE_CACHE, tenant_id.bytes))

    def earlier_cache_fingerprints(self, tenant_id: UUID) -> list[Fingerprints]:
        """As they were made under each version that is here, today's among them: to find what has to go."""
        return [Fingerprints(self._derive(Purpose.RESPONSE_CACHE, tenant_id.bytes, version)) for version in self._roots]

    def receipt_tag(self, tenant_id: UUID, raw: bytes, version: int | None = None) -> str:
        """What makes an erasure's receipt this service's: 64 hex digits. Raises LookupError for a version that is not here."""
        return hmac.new(self._derive(Purpose.RECEIPT, tenant_id.bytes, version), raw, hashlib.sha256).hexdigest()

    def journal_keys(self) -> list[bytes]:
        """The erasure journal's, the newest first: of the installation, since the journal is read before any tenant is known."""
        return [self._derive(Purpose.JOURNAL, b"", version) for version in self.versions]

    def _derive(self, purpose: Purpose, owner: bytes, version: int | None = None) -> bytes:
        # The version is no part of the derivation: each version is another root key.
        root = self._roots[self.version if version is None else version]
        info = purpose.value.encode() + b"\0" + owner
        return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=_SALT, info=info).derive(root)
