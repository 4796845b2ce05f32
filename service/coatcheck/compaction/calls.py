"""A tool call as a line tells it: what the tool was called on, without the JSON around it.

Read off the text by patterns and not parsed: a long call is several segments, of which none is JSON by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from coatcheck.compaction.quoting import ELLIPSIS, one_line
from coatcheck.domain.values import value

COMMANDS = ("command", "cmd", "commands", "script")
FILES = ("file_path", "path", "filename", "file", "notebook_path", "absolute_path", "target_file", "files", "paths", "patch")
_OTHERS = ("pattern", "query", "url", "description", "symbol", "glob")
_TOLD = re.compile('"(' + "|".join((*COMMANDS, *FILES, *_OTHERS)) + r')"\s{0,3}:\s{0,3}(?:\[\s{0,40})?"((?:[^"\\]|\\.){1,400})')
_PATCHED = re.compile(r"\*\*\* (?:Update|Add|Delete) File: ([^\n\\]{1,300})")
_READ_CHARS = 4_000
_VALUES_TOLD = 2
_PATH_CHARS = 48
_PATH_PARTS = 3


@value
class Told:
    """One of the arguments that tell what a call is about."""

    name: str
    value: str
    is_whole: bool = True
    """False where more of it stands in the call than is read."""


def arguments(text: str) -> Iterator[Told]:
    """The telling arguments of a call, in their order; the files of a patch among them, as "patch"."""
    for match in _TOLD.finditer(text, 0, _READ_CHARS):
        if match[1] != "patch":
            yield Told(match[1], _unescaped(match[2]), text.startswith('"', match.end()))
    for match in _PATCHED.finditer(text, 0, _READ_CHARS):
        yield Told("patch", match[1].strip())


def describe(text: str) -> str | None:
    """What a call was made on: its command, or its path and what else tells most; None where nothing of the kind stands there."""
    told: list[str] = []
    for argument in arguments(text):
        said = one_line(argument.value)
        if argument.name in FILES or ("/" in said and " " not in said):
            said = short_path(said)
        if said and not argument.is_whole:
            said += ELLIPSIS
        if said and said not in told:
            told.append(said)
        if len(told) == _VALUES_TOLD:
            break
    return " ".join(told) or None


def short_path(path: str) -> str:
    """A long path by its last parts: the beginning is what all of a window's paths have in common."""
    if len(path) <= _PATH_CHARS:
        return path
    parts = path.replace("\\", "/").rstrip("/").split("/")
    return f"{ELLIPSIS}/" + "/".join(parts[-_PATH_PARTS:]) if len(parts) > _PATH_PARTS + 1 else path


def _unescaped(text: str) -> str:
    """The value of a JSON string, which may be cut off."""
    try:
        found = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return found if isinstance(found, str) else text
