"""Keyed fingerprints of canonical values: equal within one tenant where the values are, and telling nothing elsewhere.

HMAC-SHA256 (RFC 2104) over canonical JSON with sorted keys, the label inside of it, so that no value of one kind can be taken for
one of another.
"""

from __future__ import annotations

import hashlib
import hmac

from coatcheck.domain.canonical import JsonValue, to_sorted_bytes
from coatcheck.domain.response_cache import Fingerprint


class Fingerprints:
    """Makes the fingerprints of one tenant."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "Fingerprints()"

    def of(self, label: str, value: JsonValue) -> Fingerprint:
        return Fingerprint(hmac.new(self._key, to_sorted_bytes([label, value]), hashlib.sha256).hexdigest())
