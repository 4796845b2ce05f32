"""What stands where a secret stood: ``[REDACTED:<kind>:<tag>]``, visibly no value, linkable inside its key's reach.

The tag is 16 hex digits of an HMAC-SHA256 of the secret. High-entropy kinds are keyed by tenant; kinds whose secrets can be
guessed (passwords, prose, cookies, URL userinfo) are keyed by session (design: isolation).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass

from coatcheck.domain.canonical import encode

PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9][a-z0-9-]{0,39}:[0-9a-f]{16}\]")


@dataclass(frozen=True, slots=True, repr=False)
class PlaceholderKeys:
    """The two keys that tags are made with; 32 bytes each."""

    tenant_key: bytes
    session_key: bytes

    def placeholder(self, kind: str, secret: str, *, guessable: bool) -> str:
        """The placeholder for a secret. ``kind`` is lower-case letters, digits and dashes, at most 40."""
        key = self.session_key if guessable else self.tenant_key
        tag = hmac.new(key, kind.encode() + b"\0" + encode(secret), hashlib.sha256).hexdigest()[:16]
        return f"[REDACTED:{kind}:{tag}]"
