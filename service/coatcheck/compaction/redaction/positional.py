"""Passwords on command lines that no flag names: which of a command's words is one, the command says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from coatcheck.compaction.redaction.assignments import is_strong
from coatcheck.compaction.redaction.shapes import is_opaque, is_path_or_url, is_placeholder
from coatcheck.compaction.redaction.values import Found, Value

_LOOK_BACK = 200
_WORD = re.compile(r"""[ \t]+(?P<word>(?:\\*"[^"\n]*"|\\*'[^'\n]*'|[^\s"'|;&<>])+)""")
_LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class _Command:
    """A command's beginning, and which of the words behind it, without options, is the password."""

    beginning: re.Pattern[str]
    position: int
    """-1 is the last."""
    least: int
    """So many words there are at least, or the password is asked for."""
    speaks_for_itself: bool = False
    """Only what is no word: the same beginning stands in prose, or before a name."""


def _command(beginning: str, position: int, least: int, *, speaks_for_itself: bool = False) -> _Command:
    return _Command(re.compile(rf"{beginning}\Z"), position, least, speaks_for_itself)


_COMMANDS = (
    _command(r"\bhtpasswd(?:[ \t]+-\w+)*[ \t]+-(?:\w*n\w*b|\w*b\w*n)\w*(?:[ \t]+-\w+)*", 1, 2),
    _command(r"\bhtpasswd(?:[ \t]+-\w+)*[ \t]+-\w*b\w*", -1, 3),
    _command(r"\brabbitmqctl\b[^\n|;&]*[ \t](?:add_user|change_password|authenticate_user)", 1, 2),
    _command(r"\bwpa_passphrase", 1, 2),
    _command(r"\bmysqladmin\b[^\n|;&]*[ \t]password", 0, 1),
    _command(r"(?:\A|[\n>$#&;|\"'`])[ \t]*(?i:net(?:\.exe)?[ \t]+user)", 1, 2, speaks_for_itself=True),
    _command(r"\bopenssl[ \t]+passwd(?:[ \t]+-[\w-]+)*", -1, 1, speaks_for_itself=True),
    _command(r"\bvault[ \t]+login(?:[ \t]+-[\w-]+)*", -1, 1, speaks_for_itself=True),
    _command(r"\bbw[ \t]+login", 1, 2, speaks_for_itself=True),
    _command(r"\bbw[ \t]+unlock", 0, 1, speaks_for_itself=True),
)


def positional(text: str, start: int) -> Found:
    """``htpasswd -b FILE USER PASSWORD``, and its kin. ``start`` is the first word behind the command."""
    before = text[max(0, start - _LOOK_BACK) : start].rstrip(" \t\"'\\")
    command = next((one for one in _COMMANDS if one.beginning.search(before)), None)
    if command is None:
        return None
    begins = start - (len(text[max(0, start - _LOOK_BACK) : start]) - len(before))
    words = [(found.start("word"), found["word"]) for found in _WORD.finditer(text, begins, _line_end(text, start))]
    words = [(at, word) for at, word in words if not word.startswith("-")]
    if len(words) < command.least:
        return None
    at, word = words[command.position]
    content = word.strip("\\\"'")
    value = Value(at + word.find(content), at + word.find(content) + len(content), content)
    if len(content) < 4 or is_placeholder(content) or is_path_or_url(content) or content.isdigit():
        return None
    if command.speaks_for_itself and not (is_strong(content) or is_opaque(content, 12)):
        return None
    return value, "password"


def _line_end(text: str, start: int) -> int:
    ends = [at for mark in ("\n", "\\n", "|", ";", "&&") if (at := text.find(mark, start, start + _LONGEST_LINE)) >= 0]
    return min(ends, default=min(len(text), start + _LONGEST_LINE))
