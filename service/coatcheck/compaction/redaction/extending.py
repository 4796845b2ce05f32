"""A secret with what a chunk's edge, a hard line break or a space in its middle took off it."""

from __future__ import annotations

import re

from coatcheck.compaction.redaction.filters import Secret
from coatcheck.compaction.redaction.shapes import is_hash_or_uuid, is_opaque
from coatcheck.compaction.redaction.wrapped import NARROWEST

_TOKEN_RUN = re.compile(r"[\w+/=.~%-]+")
_WRAP = re.compile(r"\r?\n[ \t]*")
_JOINERS = re.compile(r"[-_.]")
_TERMINAL_COLUMN = 72
"""A short rest is taken for a token's only where a terminal or a mail would have wrapped the line."""
_AFTER_WRAPPED = ("", "\n", "\r", " ", "\t", '"', "'", "`", "\\", "<", ",", ";", ")", "…")
_LONGEST_LINE = 400
_LENGTHS = (
    (re.compile(r"gh[pousr]_"), 40),
    (re.compile(r"(?:AKIA|ASIA|ABIA|ACCA)"), 20),
    (re.compile(r"AIza"), 39),
    (re.compile(r"npm_"), 40),
    (re.compile(r"hf_"), 37),
    (re.compile(r"glpat-"), 26),
    (re.compile(r"sk-ant-(?:api|admin|oat)\d\d-"), 108),
)
"""Tokens of one length: what follows a shorter one behind white space is its rest where the two together have that length."""
_MOST_GAPS = 4
_GAP = re.compile(r"[ \t]*[│|\\=]?\r?\n[ \t>│|]*|[ \t]{1,8}")
"""White space, with what mailers, shells and boxes put around a break."""


def extended(text: str, secret: Secret, *, cut: bool) -> Secret:
    """A secret with what a chunk's edge or a hard line break took off it."""
    end = secret.end
    if cut:
        rest = _TOKEN_RUN.match(text, end)
        end = rest.end() if rest else end
    whole = _of_one_length(text, secret.start, end) if secret.rank <= 1 else None
    if whole is not None:
        return Secret(secret.start, whole, secret.kind, secret.rank)
    if end - secret.start >= 16:
        low = max(0, secret.start - _LONGEST_LINE)
        line_start = max(text.rfind("\n", low, secret.start) + 1, low)
        while (wrapped := _wrapped_line(text, line_start, end)) is not None:
            line_start, end = wrapped
    return secret if end == secret.end else Secret(secret.start, end, secret.kind, secret.rank)


def _wrapped_line(text: str, line_start: int, end: int) -> tuple[int, int] | None:
    """Where the line that goes on with a token starts and the token ends, when the token was hard-wrapped at ``end``."""
    wrap = _WRAP.match(text, end)
    width = end - line_start
    if not wrap or width < NARROWEST:
        return None
    run = _TOKEN_RUN.match(text, wrap.end())
    if not run or text[run.end() : run.end() + 1] not in _AFTER_WRAPPED:
        return None
    rest = run[0]
    if len(rest) < 4 or "=" in rest.rstrip("=") or is_hash_or_uuid(rest):
        return None
    goes_on = is_opaque(_JOINERS.sub("", rest), 12) or (width >= _TERMINAL_COLUMN and _mixed(rest))
    return (wrap.end(), run.end()) if goes_on else None


def _mixed(rest: str) -> bool:
    """A short end of a token: letters and digits, or capitals inside."""
    if len(rest) >= 12:
        return False
    if any(char.isdigit() for char in rest):
        return any(char.isalpha() for char in rest)
    return any(char.isupper() for char in rest[1:]) and any(char.islower() for char in rest)


def is_whole(token: str) -> bool:
    """Whether a token of a fixed length has all of it."""
    return any(prefix.match(token) and len(token) >= length for prefix, length in _LENGTHS)


def _of_one_length(text: str, start: int, end: int) -> int | None:
    """Where a token of a fixed length ends that white space broke at ``end``."""
    length = next((length for prefix, length in _LENGTHS if prefix.match(text, start)), 0)
    found = end - start
    for _ in range(_MOST_GAPS):
        gap = _GAP.match(text, end)
        run = _TOKEN_RUN.match(text, gap.end()) if gap and found < length else None
        if run is None:
            return None
        found += len(run[0])
        end = run.end()
        if found == length:
            return end
    return None
