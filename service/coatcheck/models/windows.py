"""A long text as overlapping windows of tokens that begin and end with sentences where they can."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from coatcheck.models.sentences import Span


def windows(offsets: Sequence[Span], sentence_starts: Sequence[int], room: int, *, overlap: int) -> list[Span]:
    """Stretches of a text, [start, end) in code points, each of at most ``room`` tokens; together they are all of it.

    ``offsets`` are the places of the text's tokens, ``sentence_starts`` those of its sentences, both ascending. As many tokens as
    ``overlap`` stand in two windows at least, more where that lets the second begin with a sentence.
    """
    token_starts = [start for start, _ in offsets]
    begins = sorted({bisect_left(token_starts, place) for place in sentence_starts})
    found: list[Span] = []
    first = 0
    while first < len(offsets):
        last = min(len(offsets), first + room)
        if last < len(offsets):
            last = _latest(begins, first + room // 2, last) or last
        found.append((offsets[first][0], offsets[last - 1][1]))
        if last == len(offsets):
            break
        again = max(first + 1, last - overlap)
        first = _latest(begins, first + 1, again) or again
    return found


def _latest(begins: Sequence[int], least: int, most: int) -> int | None:
    """The last sentence that begins within [least, most]."""
    place = bisect_right(begins, most) - 1
    return begins[place] if place >= 0 and begins[place] >= least else None
