"""A segment's text cut into as few passages as the embedder's input allows, of about equal size; and what is not worth a vector."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from itertools import pairwise

from coatcheck.domain.passages import PassageSpan

_LONG_RUN = re.compile(r"[!-~]{200,}")
"""No word, path or URL is as long as this without a space."""
_ENCODED_RUN = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_CODE_SYMBOLS = re.compile(r"[{}()\[\];:,=<>\"'&|!?+*%$#^~\\`]")
_MINIFIED_CHARS = 400
_MOSTLY = 0.5
_REPEATING_CHARS = 500
_REPEATING_RATIO = 0.04
"""Prose and logs compress to a third or a tenth; what shrinks to a twenty-fifth says one thing over and over."""
_NO_SCALAR = "\ufffd"


def split(text: str, offsets: Sequence[tuple[int, int]], input_tokens: int) -> list[PassageSpan]:
    """Spans that cover the text without gap or overlap, each of at most ``input_tokens`` of its tokens.

    ``offsets`` are the tokens' spans in code points, in order. A cut moves to the nearest line break, else white space, else
    border of a word, as far as an eighth of the input size and the size of the rest allow.
    """
    count = len(offsets)
    pieces = -(-count // input_tokens)
    if pieces <= 1:
        return [PassageSpan(0, 0, len(text))]
    cuts = [0]
    token = 0
    for number in range(1, pieces):
        earliest = max(token + 1, count - (pieces - number) * input_tokens)
        latest = min(token + input_tokens, count - (pieces - number))
        token = _best_cut(text, offsets, round(count * number / pieces), earliest, latest, input_tokens // 8)
        cuts.append(offsets[token][0])
    cuts.append(len(text))
    return [PassageSpan(number, start, end) for number, (start, end) in enumerate(pairwise(cuts))]


def dense_worthy(text: str) -> bool:
    """Whether a dense vector could mean anything: not for encoded or minified data, endless repetition, or text that is no text."""
    stripped = text.strip()
    size = len(stripped)
    return not (
        size == 0
        or stripped.count(_NO_SCALAR) * 10 > size
        or _encoded_chars(stripped) > size * _MOSTLY
        or _is_minified(stripped)
        or _repeats(stripped)
    )


def _best_cut(text: str, offsets: Sequence[tuple[int, int]], target: int, earliest: int, latest: int, reach: int) -> int:
    """The token before which to cut: within reach of the target, the best border there is, the nearest of its kind."""
    low, high = max(earliest, target - reach), min(latest, target + reach)
    if low > high:
        return min(max(target, earliest), latest)
    return max(range(low, high + 1), key=lambda token: (_border(text, offsets, token), -abs(token - target)))


def _border(text: str, offsets: Sequence[tuple[int, int]], token: int) -> int:
    """How good a cut before this token is: 3 a line break, 2 white space, 1 the border of a word, 0 inside a word."""
    start = offsets[token][0]
    gap = text[offsets[token - 1][1] : start]
    if "\n" in gap or text[start : start + 1] == "\n":
        return 3
    if gap or text[start : start + 1].isspace():
        return 2
    before, after = text[start - 1 : start], text[start : start + 1]
    return 0 if before.isalnum() and after.isalnum() and before.isascii() else 1


def _encoded_chars(text: str) -> int:
    """How many characters stand in runs that no reader reads."""
    long_runs = sum(map(len, _LONG_RUN.findall(text)))
    encoded = sum(len(run) for run in _ENCODED_RUN.findall(text) if _HEX.fullmatch(run) or _looks_random(run))
    return max(long_runs, encoded)


def _looks_random(run: str) -> bool:
    """Base64 as against a path or a long name: both cases and digits, and few of the characters that join words."""
    joints = run.count("/") + run.count("_") + run.count("-")
    return joints * 12 < len(run) and not run.islower() and not run.isupper() and any(map(str.isdigit, run))


def _is_minified(text: str) -> bool:
    """Code or compact data without the white space that makes it readable."""
    size = len(text)
    if size < _MINIFIED_CHARS or len(text.split()) * 16 > size:
        return False
    return len(_CODE_SYMBOLS.findall(text)) > size * 0.18


def _repeats(text: str) -> bool:
    if len(text) < _REPEATING_CHARS:
        return False
    raw = text.encode("utf-8", "replace")
    return len(zlib.compress(raw, 1)) < len(raw) * _REPEATING_RATIO
