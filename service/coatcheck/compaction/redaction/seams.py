"""Secrets that lie over two texts or more: parts of one message, or messages that follow one another.

Whoever streams or pastes piece by piece hands in a token's halves as texts of their own, neither of which may show what it is.
Texts are read together where one ends and the next begins inside of what could be one word; what reaches over such a seam goes on
both sides of it, under one placeholder.
"""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from coatcheck.compaction.redaction.detector import Detector
from coatcheck.compaction.redaction.extending import is_whole
from coatcheck.compaction.redaction.finder import Covered, Leaf, find
from coatcheck.compaction.redaction.settling import placeholder
from coatcheck.compaction.redaction.shapes import is_hash_or_uuid, is_opaque, word_share
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.values import value

_AROUND = 400
_LONGEST_MIDDLE = 4_000
_SHORTEST = 16
"""Letters on both sides together."""
_LETTERS = string.ascii_letters + string.digits + "_+/=.~%:@!#$*^-"
_HEAD = re.compile(rf"[{re.escape(_LETTERS)}]*")
_DIGIT = re.compile(r"[0-9]")


@value
class Bridged:
    """A text without its part of secrets that lie over its edges, and how many of each kind."""

    leaf: Leaf
    counts: Mapping[str, int]


@value
class _Piece:
    """Where a stretch of a leaf's text stands in the text that is read over its seams."""

    leaf: int
    at: int
    start: int
    end: int


def bridged(detector: Detector, leaves: Sequence[Leaf], order: Sequence[int], keys: PlaceholderKeys) -> dict[int, Bridged]:
    """The leaves that change, by number. ``order``: those that are read one after the other."""
    groups = list(_groups(leaves, order))
    if not groups:
        return {}
    stretches = [_stretch(leaves, group) for group in groups]
    found = find(detector, [Leaf("".join(leaves[piece.leaf].text[piece.start : piece.end] for piece in one)) for one in stretches])
    cuts: dict[int, list[tuple[int, int, Covered]]] = {}
    for pieces, covers in zip(stretches, found, strict=True):
        seams = [piece.at for piece in pieces[1:]]
        for cover in covers:
            if not any(cover.start < seam < cover.end for seam in seams):
                continue
            for piece in pieces:
                first, last = max(cover.start, piece.at), min(cover.end, piece.at + piece.end - piece.start)
                if first < last:
                    moved = piece.start - piece.at
                    cuts.setdefault(piece.leaf, []).append((first + moved, last + moved, cover))
    return {number: _cut(leaves[number], of_one, keys) for number, of_one in cuts.items()}


def _groups(leaves: Sequence[Leaf], order: Sequence[int]) -> Iterator[list[int]]:
    """Runs of texts, each of which ends where the next goes on."""
    group: list[int] = []
    for before, after in itertools.pairwise(order):
        if group and not _is_middle(leaves[before].text):
            yield group
            group = []
        if _go_on(leaves[before].text, leaves[after].text, in_one=bool(group)):
            group = [*(group or [before]), after]
        elif group:
            yield group
            group = []
    if group:
        yield group


def _is_middle(text: str) -> bool:
    """Whether all of a text could be the middle of one word."""
    return len(text) <= _LONGEST_MIDDLE and _HEAD.fullmatch(text) is not None


def _go_on(before: str, after: str, *, in_one: bool) -> bool:
    """Whether a text goes on in the next one; ``in_one``, where what stands before it went on in it already."""
    if not before or not after or before[-1] not in _LETTERS or after[0] not in _LETTERS:
        return False
    found = _HEAD.match(after, 0, 200)
    head = found[0] if found else ""
    if not (len(head) < 4 or _DIGIT.search(head) or is_opaque(head, 4)):
        return False
    end = before[-200:]
    tail = end[len(end.rstrip(_LETTERS)) :]
    word = tail + head
    return in_one or (
        len(word) >= _SHORTEST
        and not is_whole(tail)
        and not is_hash_or_uuid(word)
        and word_share(word) < 0.6
        and _DIGIT.search(word) is not None
    )


def _stretch(leaves: Sequence[Leaf], group: Sequence[int]) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = 0
    for position, number in enumerate(group):
        length = len(leaves[number].text)
        start = max(0, length - _AROUND) if position == 0 else 0
        end = min(length, _AROUND) if position == len(group) - 1 else length
        pieces.append(_Piece(number, at, start, end))
        at += end - start
    return pieces


def _cut(leaf: Leaf, cuts: list[tuple[int, int, Covered]], keys: PlaceholderKeys) -> Bridged:
    text = leaf.text
    for start, end, cover in sorted(cuts, key=lambda cut: -cut[0]):
        text = text[:start] + placeholder(cover, keys) + text[end:]
    return Bridged(leaf._replace(text=text), Counter(cover.kind for _, _, cover in cuts))
