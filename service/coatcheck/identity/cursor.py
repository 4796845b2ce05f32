"""Page tokens: where a list goes on, sealed, so that a caller can neither make one up nor take one to another list.

A token is no secret: it holds a position that the caller has just been shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from coatcheck.domain.errors import FieldError, InvalidRequest

TAG_BYTES = 16
MAX_TOKEN_CHARS = 512
POINTER = "/query/page_token"


class Cursor:
    """Seals and opens the page tokens of one tenant."""

    __slots__ = ("_earlier", "_key")

    def __init__(self, key: bytes, *earlier: bytes) -> None:
        """Seals under ``key``; opens what earlier keys sealed too."""
        self._key = key
        self._earlier = earlier

    def __repr__(self) -> str:
        return "Cursor()"

    def seal(self, listing: str, subject: str, position: str) -> str:
        """A token for a list (``sessions``, ``entries``) of a subject (whose sessions, which manifest's entries)."""
        body = position.encode()
        return base64.urlsafe_b64encode(self._tag(self._key, listing, subject, body) + body).rstrip(b"=").decode()

    def open(self, listing: str, subject: str, token: str) -> str:
        """The position in a token. Raises InvalidRequest for anything that ``seal`` did not make for this very list."""
        if len(token) > MAX_TOKEN_CHARS:
            raise _refused()
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise _refused() from error
        tag, body = raw[:TAG_BYTES], raw[TAG_BYTES:]
        tags = [self._tag(key, listing, subject, body) for key in (self._key, *self._earlier)]
        if not any([hmac.compare_digest(tag, one) for one in tags]):
            raise _refused()
        return body.decode()

    def _tag(self, key: bytes, listing: str, subject: str, body: bytes) -> bytes:
        names = b"".join(len(name).to_bytes(4, "big") + name for name in (listing.encode(), subject.encode()))
        return hmac.new(key, names + body, hashlib.sha256).digest()[:TAG_BYTES]


def _refused() -> InvalidRequest:
    return InvalidRequest(
        "The page token does not belong to this list.", errors=[FieldError(POINTER, "is not a token that this list gave you")]
    )
