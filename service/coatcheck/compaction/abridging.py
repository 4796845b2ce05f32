"""A text without some of its words: its punctuation and white space fitted to what is left, nothing added, nothing moved.

What it gives is made of the text's own code points in their order: neither case nor script nor spacing is anybody's but the
writer's. Between two words that stay stands the strongest end of a clause that stood between them, and the widest white space.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coatcheck.compaction.expendable import Word
from coatcheck.compaction.marks import Kind, Piece, is_han, pieces

_NO_GAP = ""


def abridged(text: str, words: Sequence[Word], gone: Sequence[bool]) -> str:
    """The text without the words that are marked as gone; the text itself where none is, or where no word would be left."""
    if not any(gone) or all(gone):
        return text
    return "".join(_written(text, pieces(text, words, gone)))


def _written(text: str, found: Sequence[Piece]) -> Iterator[str]:
    last: Piece | None = None
    gaps: list[Piece] = []
    ends: list[Piece] = []
    went = False
    for piece in found:
        if piece.kind is Kind.GAP:
            gaps.append(piece)
        elif not piece.stays:
            went = True
        elif piece.kind is Kind.END:
            ends.append(piece)
        else:
            at = last.end if last is not None else 0
            yield _junction(text, last, piece, gaps, ends) if went else text[at : piece.start]
            yield text[piece.start : piece.end]
            last, gaps, ends, went = piece, [], [], False
    if last is not None:
        yield _ended(text, ends) if went else text[last.end :]


def _junction(text: str, last: Piece | None, piece: Piece, gaps: Sequence[Piece], ends: Sequence[Piece]) -> str:
    """What stands between two pieces that stay, where something between them does not."""
    if last is None:
        return _NO_GAP
    end = _ended(text, ends) if last.kind is not Kind.OPEN else _NO_GAP
    if _leans_back(text, piece):
        return end
    gap = _gap(text, gaps, _strongest(ends) if end else None)
    if last.kind is Kind.OPEN and "\n" not in gap:
        return _NO_GAP
    if not gap and not is_han(text[piece.start]) and not is_han((end or text[last.end - 1])[-1]):
        return text[last.end : piece.start]  # two words would become one
    return end + gap


def _ended(text: str, ends: Sequence[Piece]) -> str:
    """The strongest end, with the white space that it had before it."""
    end = _strongest(ends)
    if end is None:
        return _NO_GAP
    start = end.start
    while start > 0 and text[start - 1].isspace():
        start -= 1
    return text[start : end.end]


def _strongest(ends: Sequence[Piece]) -> Piece | None:
    return max(ends, key=lambda end: end.strength, default=None)


def _gap(text: str, gaps: Sequence[Piece], end: Piece | None) -> str:
    """The gap with the most lines, the last of several; with an end one that stood after it."""
    after = [text[gap.start : gap.end] for gap in gaps if end is None or gap.start >= end.end]
    return max(reversed(after), key=lambda gap: gap.count("\n"), default=_NO_GAP)


def _leans_back(text: str, piece: Piece) -> bool:
    """Whether it stands without white space after whatever comes before it."""
    if piece.kind is Kind.CLOSE:
        return True
    return text[piece.start] in "?？" and piece.start > 0 and not text[piece.start - 1].isspace()
