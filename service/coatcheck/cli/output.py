"""What a command prints: JSON, plain text, tables, progress. Never crashes on what a terminal cannot show.

Every list is one ``table``: a header, a line for each thing, aligned, times as ISO 8601 in UTC. Lone surrogates and characters
that a code page lacks are written as escapes; on a terminal, and in a table, control characters are too, so that a recalled
text cannot steer it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, Protocol

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

ID_CHARS = 36
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Steps(Protocol):
    """Something long that is being done, step by step."""

    def __call__(self, done: int) -> None: ...


def prepare_streams() -> None:
    """From here on every standard stream is one, and printing escapes what its encoding cannot hold."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _open_what_is_closed() -> None:
    """Streams that a caller closed (``>&-``) lead nowhere: else the next file that is opened would stand in their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for as long as we live


def print_json(value: Any) -> None:
    """The value as ASCII-escaped JSON, wire models, ids and times included."""
    print(_as_json(value), flush=True)


@contextmanager
def json_list() -> Iterator[Callable[[Any], None]]:
    """A list of which each value is printed as soon as it is there. What breaks it off once there is one leaves a whole list."""
    begun = False

    def add(value: Any) -> None:
        nonlocal begun
        print("," if begun else "[")
        begun = True
        print(_as_json(value), end="", flush=True)

    try:
        yield add
    except BaseException:
        if begun:
            print("\n]", flush=True)
        raise
    print("\n]" if begun else "[]", flush=True)


def say(text: str = "") -> None:
    """A line on stdout."""
    print(for_terminal(text) if sys.stdout.isatty() else text, flush=True)


def show(found: Any, as_json: bool, *lines: str) -> None:
    """What a command found or did: the value as JSON, or lines for a person."""
    if as_json:
        print_json(found)
        return
    for line in lines:
        say(line)


def show_table(found: Any, as_json: bool, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """As ``show``, with rows for a person."""
    if as_json:
        print_json(found)
    else:
        table(columns, rows)


def warn(text: str) -> None:
    """A line on stderr: what is wrong, and what a long command is at."""
    print(f"coatcheck: {for_terminal(text)}", file=sys.stderr)


def counted(number: int, thing: str) -> str:
    """``1 manifest``, ``1,200 manifests``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def for_terminal(text: str) -> str:
    """The text with its control characters made visible, line ends and tabs excepted."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A header and rows, aligned. On a terminal that is too narrow long cells are folded; anywhere else a row is one whole line."""
    cells = [[_cell(value) for value in row] for row in rows]
    if any(len(row) != len(columns) for row in cells):
        raise ValueError("a row has a cell for each column")
    if sys.stdout.isatty():
        _draw(columns, cells)
    else:
        _align([columns, *cells])


def moment(at: datetime) -> str:
    """ISO 8601 in UTC, to the second: ``2026-11-30T19:40:12Z``."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def in_utc(given: datetime | None) -> datetime | None:
    """A time as somebody typed it: of UTC where it does not say of what."""
    return given.replace(tzinfo=UTC) if given is not None and given.tzinfo is None else given


def _cell(value: object) -> str:
    """One line of text. Line ends and tabs too are made visible: they would break the row."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, list | tuple):
        return ",".join(map(_cell, value))
    return for_terminal(str(value)).replace("\n", "\\n").replace("\t", "\\t")


def _align(lines: Sequence[Sequence[str]]) -> None:
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True))
        say("  ".join(padded).rstrip())


def _draw(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False)
    needed = 0
    for number, column in enumerate(columns):
        widest = max([len(column), *(len(row[number]) for row in cells)])
        # An id that is cut is no use to the next command: a terminal that is too narrow breaks its line instead.
        drawn.add_column(column, no_wrap=widest <= ID_CHARS, overflow="fold")
        needed += min(widest, ID_CHARS) + 2
    for row in cells:
        drawn.add_row(*map(Text, row))
    console = Console()
    console.width = max(console.width, needed)
    console.print(drawn)


@contextmanager
def progress(title: str) -> Iterator[Steps]:
    """A progress bar on stderr where that is a terminal; nothing elsewhere. Call with how much is done."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(title, total=None)
        yield lambda done: drawn.update(task, completed=done)


def _as_json(value: Any) -> str:
    return json.dumps(value, default=_plain, indent=2 if sys.stdout.isatty() else None)


def _plain(value: object) -> object:
    from pathlib import Path
    from uuid import UUID

    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return value.model_dump(mode="python")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID | Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
