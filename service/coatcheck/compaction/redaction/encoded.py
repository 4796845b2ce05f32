"""The *revealed* view: Base64 and hex digits that encode text, read as that text. Wrapped, unpadded, and layer in layer.

A rule finds where such a run stands: what encodes ASCII keeps to a part of the alphabet, so that hashes, pictures and keys are
told from it without being decoded. Every character of the revealed text spans the whole run: a secret in it takes all of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from coatcheck.compaction.redaction.base64_text import decoded_base64
from coatcheck.compaction.redaction.detector import Hit
from coatcheck.compaction.redaction.view import Replacement, View

BASE64 = "coatcheck.encoded.base64"
HEX = "coatcheck.encoded.hex"
BYTES = "coatcheck.encoded.bytes"
CODES = "coatcheck.encoded.codes"
ENCODINGS = frozenset((BASE64, HEX, BYTES, CODES))
MAX_LAYERS = 3
_RUN = re.compile(r"[A-Za-z0-9+/_-]+")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_WRAP = re.compile(r"(?:\r?\n|(?:\\+r)?\\+n)[ \t>]*(?=[A-Za-z0-9+/_-])")
_PADDING = re.compile(r"={1,2}|(?:%3[dD]){1,2}")
_NUMBER = re.compile(r"(?:0[xX])?([0-9a-fA-F]{2,3})")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_SHORTEST_LINE = 48
"""Nobody wraps Base64 earlier: what follows a shorter run is another one."""
_MAX_LINES = 2_000
_LOOK_BACK = 8_192
_READABLE = 0.95


def revealed(view: View, hits: Sequence[Hit]) -> View | None:
    """The view with what its matches say is encoded read; None where that is no text after all."""
    replacements: list[Replacement] = []
    reached = 0
    for hit in sorted(hits, key=lambda hit: hit.start):
        if hit.start < reached or hit.decoded is not None:
            continue
        found = _found(view.text, hit, reached)
        if found is not None:
            replacements.append(found)
            reached = found.end
    return view.rewritten(replacements) if replacements else None


def _found(text: str, hit: Hit, reached: int) -> Replacement | None:
    match hit.rule:
        case "coatcheck.encoded.base64":
            return _base64_at(text, hit.start, reached)
        case "coatcheck.encoded.hex":
            return _hex_at(text, hit.start)
    base = 16 if hit.rule == BYTES else 10
    numbers = _NUMBER.findall(text, hit.start, hit.end)
    return _readable(hit.start, hit.end, "".join(chr(int(number, base)) for number in numbers))


def _hex_at(text: str, start: int) -> Replacement | None:
    found = _HEX.match(text, start)
    if found is None:
        return None
    return _readable(start, found.end(), bytes.fromhex(found[0]).decode("utf-8", "replace"))


def _base64_at(text: str, start: int, reached: int) -> Replacement | None:
    """A run around a place in it: to the left as far as it goes, to the right over its lines."""
    low = max(reached, start - _LOOK_BACK)
    begins = low + len(text[low:start].rstrip(_LETTERS))
    lines: list[str] = []
    at = end = begins
    for _ in range(_MAX_LINES):
        run = _RUN.match(text, at)
        if run is None:
            break
        lines.append(run[0])
        end = run.end()
        wrap = _WRAP.match(text, end)
        if wrap is None or len(run[0]) < _SHORTEST_LINE or len(run[0]) != len(lines[0]) > len(lines[-1]) or len(run[0]) % 4:
            break
        at = wrap.end()
    padding = _PADDING.match(text, end)
    for skipped in range(4):  # what stands before it without a sign between (an escaped line end's "n") is none of it
        found = _readable(begins + skipped, padding.end() if padding else end, _decoded("".join(lines)[skipped:]))
        if found is not None:
            return found
    # A part of a path: slashes are letters of the one alphabet and ends in the other.
    begins, stop = max(begins, text.rfind("/", low, start) + 1), text.find("/", start, end)
    return _readable(begins, stop, _decoded(text[begins:stop])) if stop >= 0 else None


def _decoded(run: str) -> str:
    return decoded_base64(run[: len(run) - (len(run) % 4 == 1)])


def _readable(start: int, end: int, content: str) -> Replacement | None:
    readable = sum(char.isprintable() or char in "\r\n\t" for char in content) - content.count("\ufffd")
    return Replacement(start, end, content) if content and readable >= _READABLE * len(content) else None
