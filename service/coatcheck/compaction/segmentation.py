"""Parts to segments: at most 3,800 code points, cut at the best boundary, balanced so that no tiny tail is left.

Joined again, the segments are the part. Linear in the text: every look goes to one segment's length around the cut.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator

from coatcheck.compaction.graphemes import Boundaries
from coatcheck.domain.placeholders import PLACEHOLDER
from coatcheck.domain.segments import SEGMENT_MAX_CHARS

_BLOCK_LINE = re.compile(r"^(?:```|~~~|#{1,6} |diff --git )", re.MULTILINE)
SENTENCE_END = r"[.!?…][\"'”’»)\]]{0,3}\s+|[。！？｡]+[”’」』）]*\s*"
_SENTENCE_END = re.compile(SENTENCE_END)
_WORD_END = re.compile(r"\s+|[,;}\])>，；、]+")

_EARLIEST = 0.6
_LATEST = 1.3
"""A cut lies between these shares of the ideal length: enough room for a good boundary, and no piece far smaller than another."""


def split(text: str, max_chars: int = SEGMENT_MAX_CHARS) -> list[str]:
    """The text's segments, in order; their concatenation is the text. An empty text has none."""
    if len(text) <= max_chars:
        return [text] if text else []
    return list(_Splitter(text, max_chars).segments())


class _Splitter:
    def __init__(self, text: str, max_chars: int) -> None:
        self._text = text
        self._max_chars = max_chars
        self._blocks = _block_boundaries(text)
        spans = [match.span() for match in PLACEHOLDER.finditer(text)] if "[REDACTED:" in text else []
        self._placeholder_starts = [start for start, _ in spans]
        self._placeholder_ends = [end for _, end in spans]

    def segments(self) -> Iterator[str]:
        start = 0
        while len(self._text) - start > self._max_chars:
            cut = self._cut_after(start)
            yield self._text[start:cut]
            start = cut
        yield self._text[start:]

    def _cut_after(self, start: int) -> int:
        remaining = len(self._text) - start
        ideal_chars = -(-remaining // -(-remaining // self._max_chars))
        ideal = start + ideal_chars
        latest = start + min(self._max_chars, int(ideal_chars * _LATEST))
        earliest = start + int(ideal_chars * _EARLIEST)
        boundaries = Boundaries(self._text, start, start + self._max_chars)
        for candidates in self._levels(earliest, ideal, latest):
            for cut in candidates:
                if earliest <= cut <= latest and self._placeholder_at(cut) is None and boundaries.at(cut):
                    return cut
        return self._forced_cut(start, min(ideal, latest), boundaries)

    def _levels(self, earliest: int, ideal: int, latest: int) -> Iterator[list[int]]:
        """Places to cut, the best kind of boundary first, nearest to the ideal first within a kind."""

        def nearest(places: list[int]) -> list[int]:
            return sorted(places, key=lambda place: abs(place - ideal))

        text = self._text
        blocks = self._blocks[bisect.bisect_left(self._blocks, earliest) : bisect.bisect_right(self._blocks, latest)]
        yield nearest(blocks)
        yield nearest(_ends(text, "\n\n", earliest, latest))
        yield nearest(_ends(text, "\n", earliest, latest))
        yield nearest([match.end() for match in _SENTENCE_END.finditer(text, earliest, latest)])
        yield nearest([match.end() for match in _WORD_END.finditer(text, earliest, latest)])

    def _forced_cut(self, start: int, wanted: int, boundaries: Boundaries) -> int:
        """No boundary of any kind: between two graphemes, outside a placeholder, else (a giant grapheme) at the very limit."""
        cut = wanted
        while cut > start:
            placeholder = self._placeholder_at(cut)
            if placeholder is not None:
                cut = placeholder
                continue
            if boundaries.at(cut):
                return cut
            boundary = boundaries.last_up_to(cut - 1)
            cut = boundary if boundary is not None else start
        # A grapheme reaches from the start over the wanted place: end with it, if a segment can hold it.
        limit = start + self._max_chars
        after = boundaries.first_after(wanted)
        if after is not None and after <= limit and self._placeholder_at(after) is None:
            return after
        placeholder = self._placeholder_at(limit)
        return placeholder if placeholder is not None and placeholder > start else limit

    def _placeholder_at(self, cut: int) -> int | None:
        """The start of the placeholder that a cut would split."""
        position = bisect.bisect_left(self._placeholder_starts, cut) - 1
        if position >= 0 and cut < self._placeholder_ends[position]:
            return self._placeholder_starts[position]
        return None


def _block_boundaries(text: str) -> list[int]:
    """Before a heading, a diff's file and an opening code fence; after a closing fence."""
    places: list[int] = []
    in_fence = False
    for match in _BLOCK_LINE.finditer(text):
        is_fence = match[0] in ("```", "~~~")
        if is_fence and in_fence:
            line_end = text.find("\n", match.end())
            if line_end >= 0:
                places.append(line_end + 1)
        elif not in_fence:
            places.append(match.start())
        if is_fence:
            in_fence = not in_fence
    return places


def _ends(text: str, boundary: str, earliest: int, latest: int) -> list[int]:
    """The ends of every occurrence of a boundary inside [earliest, latest]."""
    places: list[int] = []
    found = text.find(boundary, earliest, latest)
    while found >= 0:
        places.append(found + len(boundary))
        found = text.find(boundary, found + len(boundary), latest)
    return places
