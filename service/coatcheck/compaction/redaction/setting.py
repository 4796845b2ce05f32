"""How a text writes a name and its value: what stands before, between and behind the two."""

from __future__ import annotations

import re

from coatcheck.compaction.redaction.values import Value
from coatcheck.compaction.redaction.wordlists import words
from coatcheck.domain.values import value

LOOK_BACK = 160
TYPES = words(
    """
    str string bytes int float bool boolean number any unknown never void object optional union list dict tuple set
    map array secretstr char varchar text json uuid date datetime nil type literal required nullable readonly none
    null true false
    """
)
"""Words that stand behind a colon where a type does."""

_NAME_BACKWARDS = re.compile(r"[\w.$\[\]-]+")
_SPACED_NAME_BACKWARDS = re.compile(r"(?i)(?:yek|nekot|terces|drowssap) [\w.-]+")
_SEPARATORS = ("=>", ":=", "===", "==", "!=", "::", "=", ":", ",", "(")
_BLOCK_SCALAR = re.compile(r":[ \t]*[|>][+-]?[ \t]*\r?\n[ \t]*\Z")
_OPENING = re.compile(r"""[A-Za-z@$]{0,2}\\*["'`]\Z""")
_LINE_START = re.compile(
    r"""(?:\A|\n|\\n)[ \t]*(?:[+\-*>#;]\s*|\d+[\t:|]\s*)*(?:export\s+|-\s+|-e\s+|ENV\s+|ARG\s+|set\s+)?["'`]?\Z"""
)
_LINE_REST = re.compile(r"[ \t]*(?:\r?\n|\\n|\Z|#|//)")
_TYPE_THEN_VALUE = re.compile(r"[&\w.\[\]<>| ?]{0,40}?[ \t]*=[ \t]*(?:[A-Za-z@$]{0,2}\\*[\"'`])?(?=\S)")
_INI_SECTION = re.compile(r"(?:\A|\n)\s*\[[\w .:/-]{1,60}\]\s*\n(?:[^\n\[]*\n){0,12}\Z")
_CONNECTION_STRING = re.compile(
    r"(?i)\b(?:server|data source|host|user id|uid|user|database|initial catalog|endpoint|driver|dsn)[ \t]*=[^;\n]*;[^\n]*\Z"
)


@value
class Setting:
    """How a text writes a name and its value. ``text`` is all of it; the name begins at ``at``, the value ends at ``end``."""

    name: str
    separator: str = ":"
    spaced: bool = False
    """White space before the separator: code and INI files, never shells."""
    is_template: bool = False
    text: str = "\n"
    at: int = 0
    end: int = 0

    @property
    def is_quoted(self) -> bool:
        """A name in quotes, as an object's key."""
        return self.text[max(0, self.at - 1) : self.at] in ('"', "'")

    @property
    def in_query(self) -> bool:
        """A pair of a query or of a form's body."""
        before = self.text[max(0, self.at - 5) : self.at]
        return before.endswith(("?", "&", "&amp;", "="))

    @property
    def in_connection_string(self) -> bool:
        """``Server=...;User Id=...;Password=...;``."""
        return bool(_CONNECTION_STRING.search(self.text[max(0, self.at - 200) : self.at]))

    @property
    def at_line_start(self) -> bool:
        start = max(0, self.at - LOOK_BACK)
        return bool(_LINE_START.search(self.text[max(start, self.text.rfind("\n", start, self.at)) : self.at]))

    @property
    def ends_line(self) -> bool:
        return bool(_LINE_REST.match(self.text, self.end))

    @property
    def ends_like_code(self) -> bool:
        return self.text[self.end : self.end + 1] in (",", ")", ";", "[", "(", "}") and self.separator in ("=", ":")

    @property
    def in_section(self) -> bool:
        """Under an INI file's section."""
        return self.spaced and bool(_INI_SECTION.search(self.text[max(0, self.at - 600) : self.at]))

    @property
    def in_marker(self) -> bool:
        """Inside another redactor's ``[REDACTED:kind:tag]``."""
        opening = self.text.rfind("[REDACTED:", max(0, self.at - 60), self.end)
        return opening >= 0 and self.text.find("]", opening, self.end) < 0

    @property
    def is_upper(self) -> bool:
        return self.name.upper() == self.name

    @property
    def is_environment(self) -> bool:
        """``NAME=value`` as in a shell, an environment file, a Dockerfile, a form."""
        if self.separator != "=" or self.spaced:
            return False
        return self.is_upper or self.in_query or self.in_connection_string or (self.at_line_start and self.ends_line)


def setting_before(text: str, value: Value) -> Setting | None:
    """What stands before a value that an assignment rule found; None when it is no assignment after all."""
    low = max(0, value.begins - LOOK_BACK)
    head = text[low : value.begins]
    opening = _OPENING.search(head[-16:])
    literal = opening[0].rstrip("\\\"'`").lower() if opening else ""
    if opening:
        head = head[: len(head) - len(opening[0])]
    block = _BLOCK_SCALAR.search(head[-100:]) if head[-1:] in (" ", "\t", "\n") else None
    head = head[: len(head) - len(block[0]) + 1] if block else head.rstrip(" \t*")
    separator = next((mark for mark in _SEPARATORS if head.endswith(mark)), None)
    if separator is None:
        return None
    head = head[: -len(separator)]
    bare = head.rstrip(" \t")
    spaced = len(bare) < len(head)
    head = bare.rstrip("*")
    bracketed = head.endswith("]")
    unquoted = head[:-1].rstrip("\"'`") if bracketed else head.rstrip("\"'`")
    quoted = len(unquoted) < len(head) - bracketed
    if bracketed and not quoted:
        unquoted = head
    head = unquoted.rstrip("\\")
    backwards = head[::-1]
    found = _SPACED_NAME_BACKWARDS.match(backwards) or _NAME_BACKWARDS.match(backwards)
    if not found:
        return None
    name = found[0][::-1]
    at = low + len(head) - len(name)
    is_index = name.count("[") != name.count("]") or (bracketed and not quoted and ("[" not in name or spaced))
    if is_index or text[max(0, at - 2) : at] == "::":
        return None  # an index into something (rows[pw] = ...), a type's name
    is_template = "{" in value.text and literal in ("f", "rf", "fr", "$")
    return Setting(name, separator, spaced, is_template, text, at, value.end)


def typed_value_at(text: str, value: Value) -> int | None:
    """Where the value begins when what stands behind the colon is a type: ``password: str = "..."``."""
    if value.quote or value.text.lower().strip("&*?[]<>()") not in TYPES:
        return None
    found = _TYPE_THEN_VALUE.match(text, value.end)
    return found.end() if found else None
