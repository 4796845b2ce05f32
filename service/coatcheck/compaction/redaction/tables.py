"""Secrets in tables that are drawn with bars: what databases' shells print, and Markdown. A column's head names its values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from coatcheck.compaction.redaction.assignments import is_strong, kind_under_key
from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.shapes import is_opaque
from coatcheck.domain.values import value

_LINE = re.compile(r"[^\r\n]+")
_RULE = re.compile(r"[ \t|+:=-]+")
_CELL = re.compile(r"[^|]+")
_HEAD = re.compile(r"[\w .-]{2,40}")
_LONGEST_VALUE = 400


@value
class Cell:
    """What stands between two bars, without the space around it: ``text[start:end]`` of the whole text, and the head's kind."""

    start: int
    end: int
    text: str
    kind: str = ""


def find_in_tables(text: str, _places: Iterable[int]) -> Iterator[Cell]:
    """The cells that hold secrets: under a head that names one, or behind it where a row is two cells (``\\x`` in psql)."""
    heads: dict[int, str] = {}
    width = 0
    for line in _LINE.finditer(text):
        row = line[0]
        if "|" not in row:
            if not _RULE.fullmatch(row):
                heads = {}
            continue
        if _RULE.fullmatch(row):
            continue
        cells = list(_cells(row, line.start()))
        if heads and len(cells) == width:
            yield from _secrets((heads[at], cells[at]) for at in heads)
            continue
        heads, width = {at: cell.text for at, cell in enumerate(cells) if _names_a_secret(cell.text)}, len(cells)
        beside = list(_secrets([(heads[0], cells[1])])) if width == 2 and 0 in heads else []
        if beside:
            yield from beside
            heads = {}


def _cells(row: str, at: int) -> Iterator[Cell]:
    for found in _CELL.finditer(row):
        stripped = found[0].strip(" \t`")
        if stripped:
            start = at + found.start() + found[0].index(stripped)
            yield Cell(start, start + len(stripped), stripped)


def _names_a_secret(head: str) -> bool:
    return bool(_HEAD.fullmatch(head)) and classify(head.replace(" ", "_"))[0] in (NameClass.PASSWORD, NameClass.SECRET)


def _secrets(named: Iterable[tuple[str, Cell]]) -> Iterator[Cell]:
    for head, cell in named:
        content = cell.text
        if not 6 <= len(content) <= _LONGEST_VALUE or " " in content or not (is_strong(content) or is_opaque(content, 12)):
            continue
        kind = kind_under_key(head.replace(" ", "_"), content)
        if kind:
            yield Cell(cell.start, cell.end, content, kind)
