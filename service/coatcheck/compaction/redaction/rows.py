"""Secrets in rows whose columns are named once, before them: SQL's INSERT and COPY, CSV and its kin, aligned columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from coatcheck.compaction.redaction.assignments import is_strong, kind_under_key
from coatcheck.compaction.redaction.names import NameClass, classify
from coatcheck.compaction.redaction.shapes import is_opaque
from coatcheck.compaction.redaction.tables import Cell
from coatcheck.domain.values import value

_INSERT = re.compile(
    r"(?i)\b(?:insert|replace)\s+(?:ignore\s+)?into\s+[\w.\"'`\[\]]+\s*\((?P<columns>[^()]{1,4000})\)\s*"
    r"(?:overriding\s+\w+\s+value\s+)?(?:values\s*(?=\()|(?P<select>select\s+(?=[^\s*])))"
)
_COPY = re.compile(r"(?i)\bcopy\s+[\w.\"]+\s*\((?P<columns>[^()\n]{1,4000})\)\s+from\s+stdin[^\n;]*;\r?\n")
_SQL_VALUE = re.compile(
    r"""(?x) \s*
      (?: (?P<call>[A-Za-z_][\w.]*) \s* \( \s* )?                            # crypt('...', ...), PASSWORD('...')
      (?: [NEen]? \\* ' (?P<single> (?: [^'\\] | '' | \\(?!') . )* ) \\* '
        | \\* " (?P<double> [^"\\\n]* ) \\* "
        | (?P<bare> [^\s,()'"]* ) )
      (?P<rest> (?: [^,()'"] | \( (?: [^()'"] | '[^']*' )* \) )* )
      (?(call) (?: , (?: [^()'"] | '[^']*' | \( [^()]* \) )* )? \) [^,()'"]* )
    """
)
_NEXT_ROW = re.compile(r"\s*,\s*(?=\()")
_HEAD_CELL = re.compile(r"[\w .-]{2,40}")
_ALIGNED_CELL = re.compile(r"\S+(?: \S+)*")
_LINE = re.compile(r"[^\r\n]+")
_SPACES = "  "
_LONGEST_HEAD = 1_000
_BETWEEN = (",", ";", "\t")
_CSV_CELL = {mark: re.compile(rf'[ ]*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<bare>[^{mark}"]*))[ ]*(?:{mark}|\Z)') for mark in _BETWEEN}
_LONGEST_VALUE = 4_000
_MOST_COLUMNS = 200


def find_in_inserts(text: str, _places: Iterable[int]) -> Iterator[Cell]:
    """Values of an INSERT under the names of its columns, and of the rows that follow a COPY."""
    for found in _INSERT.finditer(text):
        heads = _heads(found["columns"].split(","))
        at = found.end()
        bare = found["select"] is not None
        while heads and (bare or text[at : at + 1] == "("):
            values, end = _values(text, at if bare else at + 1)
            yield from filter(None, (_secret(heads[number], cell) for number, cell in values if number in heads))
            following = _NEXT_ROW.match(text, end)
            if bare or following is None:
                break
            at = following.end()
    for found in _COPY.finditer(text):
        heads = _heads(found["columns"].split(","))
        for line in _LINE.finditer(text, found.end()) if heads else ():
            if line[0] == "\\.":
                break
            yield from _under(heads, _cells(line[0], line.start(), "\t"))


def find_in_columns(text: str, places: Iterable[int]) -> Iterator[Cell]:
    """Cells under a first line that names its columns: between commas, semicolons or tabs, or aligned by spaces."""
    reached = 0
    for place in sorted(places):
        start = text.rfind("\n", 0, place + 1) + 1 if text[place : place + 1] != "\n" else place + 1
        head = _LINE.match(text, start)
        if head is None or start < reached or len(head[0]) > _LONGEST_HEAD:
            continue
        columns = _columns(head[0])
        if columns is None:
            continue
        for line in _LINE.finditer(text, head.end()):
            cells = columns.cells(line[0], line.start())
            reached = line.end()
            if len(cells) != columns.width:
                break
            yield from _under(columns.heads, cells)


@value
class _Columns:
    """What a first line says of those below. ``mark`` stands between the cells; two spaces where they begin at ``starts``."""

    heads: Mapping[int, str]
    width: int
    mark: str
    starts: tuple[int, ...] = ()

    def cells(self, row: str, start: int) -> list[Cell]:
        return _aligned(row, start, self.starts) if self.mark == _SPACES else _cells(row, start, self.mark)


def _columns(row: str) -> _Columns | None:
    for mark in _BETWEEN:
        cells = _cells(row, 0, mark) if mark in row else []
        if 1 < len(cells) <= _MOST_COLUMNS and all(_HEAD_CELL.fullmatch(cell.text.lstrip("# ")) for cell in cells):
            heads = _heads([cell.text for cell in cells])
            return _Columns(heads, len(cells), mark) if heads else None
    found = list(_ALIGNED_CELL.finditer(row)) if _SPACES in row and row.upper() == row else []
    heads = _heads([one[0] for one in found]) if len(found) > 1 else {}
    return _Columns(heads, len(found), _SPACES, tuple(one.start() for one in found)) if heads else None


def _heads(names: list[str]) -> dict[int, str]:
    """Which columns hold secrets, by their names."""
    plain = [name.strip(" \t\r\n\"'`[]#") for name in names]
    named = {at: name.replace(" ", "_") for at, name in enumerate(plain) if _HEAD_CELL.fullmatch(name)}
    return {at: name for at, name in named.items() if classify(name)[0] in (NameClass.PASSWORD, NameClass.SECRET)}


def _under(heads: Mapping[int, str], cells: list[Cell]) -> Iterator[Cell]:
    for at, name in heads.items():
        cell = _secret(name, cells[at]) if at < len(cells) else None
        if cell is not None and (is_strong(cell.text) or is_opaque(cell.text, 12)) and " " not in cell.text:
            yield cell


def _secret(name: str, cell: Cell) -> Cell | None:
    if not 4 <= len(cell.text) <= _LONGEST_VALUE:
        return None
    kind = kind_under_key(name, cell.text)
    return Cell(cell.start, cell.end, cell.text, kind) if kind else None


def _values(text: str, start: int) -> tuple[list[tuple[int, Cell]], int]:
    """The literals of a row, by column; and where the row ends."""
    values: list[tuple[int, Cell]] = []
    at = start
    for number in range(_MOST_COLUMNS):
        found = _SQL_VALUE.match(text, at, at + 2 * _LONGEST_VALUE)
        if found is None:
            break
        group = next((name for name in ("single", "double") if found[name] is not None), None)
        if group is not None:
            values.append((number, Cell(found.start(group), found.end(group), found[group])))
        at = found.end()
        if text[at : at + 1] != ",":
            break
        at += 1
    return values, at + 1 if text[at : at + 1] == ")" else len(text)


def _cells(row: str, start: int, mark: str) -> list[Cell]:
    cells: list[Cell] = []
    at = 0
    cell = _CSV_CELL[mark]
    while at <= len(row) and len(cells) < _MOST_COLUMNS:
        found = cell.match(row, at)
        if found is None:
            return []
        group = "quoted" if found["quoted"] is not None else "bare"
        content = found[group].strip()
        begins = found.start(group) + found[group].find(content)
        cells.append(Cell(start + begins, start + begins + len(content), content))
        if found[0][-1:] != mark:
            return cells
        at = found.end()
    return cells


def _aligned(row: str, start: int, starts: tuple[int, ...]) -> list[Cell]:
    """The cells of a row whose words begin where the heads do."""
    found = {one.start(): one[0] for one in re.finditer(r"\S+(?: \S+)*?(?=  |\s*\Z)", row)}
    if not set(starts[:-1]) <= set(found) and not set(found) <= set(starts):
        return []
    return [Cell(start + at, start + at + len(found.get(at, "")), found.get(at, "")) for at in starts]
