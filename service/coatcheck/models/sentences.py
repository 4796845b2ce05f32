"""Where the sentences of a text lie, so that what a model reads in parts is cut between them."""

from __future__ import annotations

import re

from coatcheck.compaction.segmentation import SENTENCE_END

_END = re.compile(rf"{SENTENCE_END}|\n\s*")

Span = tuple[int, int]


def spans(text: str) -> list[Span]:
    """[start, end) of each sentence or line that says something, white space at its edges left out."""
    found: list[Span] = []
    start = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        stretch = text[start:end]
        bare = stretch.strip()
        if bare:
            first = start + len(stretch) - len(stretch.lstrip())
            found.append((first, first + len(bare)))
        start = end
    return found


def head(text: str, max_chars: int) -> str:
    """The sentences from the start that fit; nothing of one that does not."""
    fitting = [end for _, end in spans(text) if end <= max_chars]
    return text[: fitting[-1]] if fitting else ""


def without_last(text: str) -> str:
    """All but the last sentence."""
    places = spans(text)
    return text[: places[-2][1]] if len(places) > 1 else ""
