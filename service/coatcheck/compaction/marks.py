"""The pieces that a text is made of: words, gaps of white space, and marks, each with what its staying depends on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import accumulate

from coatcheck.compaction.expendable import Word
from coatcheck.compaction.fact_tokens import HAN
from coatcheck.domain.values import value

_STRENGTHS = {**dict.fromkeys(".。!！", 3), **dict.fromkeys(";；:：", 2), **dict.fromkeys(",，、—–", 1)}
_PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "【": "】", "「": "」", "『": "』", "《": "》", "«": "»", "“": "”", "‘": "’"}
_CLOSING = frozenset(_PAIRS.values())
_ALIKE = frozenset(("*", "**", "***", '"', "`", "``"))
"""Marks that open and close alike."""
_RUNS = re.compile(r"(?P<gap>\s+)|(?P<mark>\S)(?P=mark)*")
_HAN = re.compile(f"[{HAN}]")
_INDENT = 40
_NESTED = 8
"""Open marks that are looked at for the one that a mark closes."""


class Kind(StrEnum):
    """What a piece is; a mark by what it stays with."""

    WORD = "word"
    GAP = "gap"
    OPEN = "open"
    CLOSE = "close"
    END = "end"
    """Of a clause, or a mark that stands alone."""
    BULLET = "bullet"
    WITH = "with"
    """A mark that belongs to the word that it touches."""


@value
class Piece:
    """[start, end) in code points. ``strength`` is that of an end."""

    start: int
    end: int
    kind: Kind
    stays: bool = True
    strength: int = 0


def pieces(text: str, words: Sequence[Word], gone: Sequence[bool]) -> list[Piece]:
    """The pieces of a text in their order, every code point in one of them; which stay once the words that are gone went."""
    found = list(_pieces(text, words, gone))
    partners, touched, lines = _partners(text, found), _touched(found), _lines(text, found)
    standing = list(accumulate((piece.kind is Kind.WORD for piece in found), initial=0))
    staying = list(accumulate((piece.kind is Kind.WORD and piece.stays for piece in found), initial=0))
    settled: list[Piece] = []
    for place, piece in enumerate(found):
        first, last = sorted((place, partners.get(place, place)))
        if standing[last] > standing[first]:
            piece = _staying(piece, staying[last] > staying[first])
        elif piece.kind is Kind.BULLET:
            first, last = lines[place]
            piece = _staying(piece, staying[last] > staying[first])
        elif piece.kind in (Kind.OPEN, Kind.CLOSE, Kind.WITH):
            word = touched[place]
            piece = Piece(piece.start, piece.end, Kind.WITH if word else Kind.END, word is None or word.stays, piece.strength)
        settled.append(piece)
    return settled


def is_han(char: str) -> bool:
    return _HAN.match(char) is not None


def _pieces(text: str, words: Sequence[Word], gone: Sequence[bool]) -> Iterator[Piece]:
    position = 0
    for word, goes in zip(words, gone, strict=True):
        yield from _between(text, position, word.start)
        yield Piece(word.start, word.end, Kind.WORD, not goes)
        position = word.end
    yield from _between(text, position, len(text))


def _between(text: str, start: int, end: int) -> Iterator[Piece]:
    for match in _RUNS.finditer(text, start, end):
        at, to = match.span()
        if match["gap"] is not None:
            yield Piece(at, to, Kind.GAP)
        else:
            yield Piece(at, to, _kind(text, at, to), strength=_STRENGTHS.get(match["mark"], 0))


def _kind(text: str, start: int, end: int) -> Kind:
    mark, before, after = text[start:end], text[start - 1 : start], text[end : end + 1]
    opens, closes = not before or before.isspace(), not after or after.isspace()
    if opens and closes:
        return Kind.BULLET if not before or before == "\n" or _is_indent(text, start) else Kind.END
    if mark in _PAIRS:
        return Kind.OPEN
    if mark in _CLOSING:
        return Kind.CLOSE
    if mark in _ALIKE and opens != closes:
        return Kind.OPEN if opens else Kind.CLOSE
    if mark[0] in _STRENGTHS and not opens and (closes or is_han(after) or is_han(before) or after in "?？"):
        return Kind.END
    return Kind.WITH


def _is_indent(text: str, end: int) -> bool:
    """Whether nothing but a few spaces stands between the start of the line and ``end``."""
    indent = text[max(end - _INDENT, 0) : end].rpartition("\n")
    return not indent[2].strip() and (bool(indent[1]) or end <= _INDENT)


def _partners(text: str, found: Sequence[Piece]) -> dict[int, int]:
    """The place of each mark that opens with that of the one that closes it, both ways; within a paragraph."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for place, piece in enumerate(found):
        mark = text[piece.start : piece.end]
        if piece.kind is Kind.GAP and "\n" in mark:
            opened = [] if mark.count("\n") > 1 else [at for at in opened if text[found[at].start : found[at].end] in _PAIRS]
        elif piece.kind is Kind.OPEN:
            opened = [*opened[1 - _NESTED :], place]
        elif piece.kind is Kind.CLOSE:
            fitting = [at for at in opened if _PAIRS.get(opening := text[found[at].start : found[at].end], opening) == mark]
            if fitting:
                partners[fitting[-1]], partners[place] = place, fitting[-1]
                opened = opened[: opened.index(fitting[-1])]
    return partners


def _touched(found: Sequence[Piece]) -> list[Piece | None]:
    """For each piece the word before it that no gap parts from it, else the one after it."""
    touched: list[Piece | None] = []
    before: Piece | None = None
    for piece in found:
        before = None if piece.kind is Kind.GAP else piece if piece.kind is Kind.WORD else before
        touched.append(before)
    after: Piece | None = None
    for place in range(len(found) - 1, -1, -1):
        piece = found[place]
        after = None if piece.kind is Kind.GAP else piece if piece.kind is Kind.WORD else after
        touched[place] = touched[place] or after
    return touched


def _lines(text: str, found: Sequence[Piece]) -> dict[int, tuple[int, int]]:
    """For each bullet the places of its line, [first, last)."""
    lines: dict[int, tuple[int, int]] = {}
    bullets: list[int] = []
    for place, piece in enumerate(found):
        if piece.kind is Kind.BULLET:
            bullets.append(place)
        elif piece.kind is Kind.GAP and "\n" in text[piece.start : piece.end]:
            lines.update((bullet, (bullet, place)) for bullet in bullets)
            bullets = []
    return lines | {bullet: (bullet, len(found)) for bullet in bullets}


def _staying(piece: Piece, stays: bool) -> Piece:
    return Piece(piece.start, piece.end, piece.kind, stays, piece.strength)
