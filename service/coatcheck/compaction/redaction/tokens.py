"""Tokens that say themselves what they are: told from placeholders, digests with a name, and words with a prefix."""

from __future__ import annotations

import re

from coatcheck.compaction.redaction.base64_text import decoded_base64
from coatcheck.compaction.redaction.shapes import in_digest_or_blob, is_placeholder, word_share
from coatcheck.compaction.redaction.wordlists import words

_TELLING_FORMS = words("webhook-url aws-access-key jwt age-key slack-token private-key")
"""Kinds whose form alone is proof enough."""
_PREFIX = re.compile(r"(?:[a-zA-Z0-9]{1,8}[_-]){1,2}")
_ENDS_IN_HASH = re.compile(r"[_-](?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")
_HEX_BODIES = re.compile(r"do[opr]_v1|shp|pul-|sk-|sk_|sntry|gl|sbp_|key-[0-9a-f]{32}\Z|lsv2|rootly")
"""Providers whose tokens are hex digits behind a prefix; with any other prefix that is a hash with a name."""
_MASK = frozenset("xX0*.-_")
_COUNTING = re.compile(r"0?123456(?:7(?:8(?:90?)?)?)?|abcdef(?:g(?:h(?:i[a-z]*)?)?)?")


def token_length(text: str, start: int, end: int, kind: str) -> int:
    """How many characters of the match ``text[start:end]`` are a token of this kind; 0 when it is none."""
    token = text[start:end]
    if kind == "private-key":
        return len(token) if "PRIVATE KEY" in decoded_base64(token[:80]) else 0
    if kind != "webhook-url":
        token = token.rstrip(".-_")
    if is_placeholder(token) or "EXAMPLE" in token:
        return 0
    if kind in _TELLING_FORMS or _is_token(text, start, token, kind):
        return len(token)
    return 0


def _is_token(text: str, start: int, token: str, kind: str) -> bool:
    goes_on_to_the_left = kind in ("api-key", "provider-token") and text[start - 1 : start] in ("-", "+")
    if goes_on_to_the_left or in_digest_or_blob(text, start, token):
        return False
    if _ENDS_IN_HASH.search(token) and not _HEX_BODIES.match(token):
        return False
    prefix = _PREFIX.match(token)
    body = token.partition(":")[2] if kind == "telegram-token" else token[prefix.end() if prefix else 0 :]
    return _is_body(body)


def _is_body(body: str) -> bool:
    if set(body) <= _MASK or len(_COUNTING.sub("", body.lower())) < 6:
        return False
    if len(set(body)) < 6:
        return True
    if word_share(body) >= 0.55:
        return False
    mixed = any(char.isupper() for char in body) and any(char.islower() for char in body)
    return mixed or any(char.isdigit() for char in body)
