"""Reading a value whole, from its first character: quoted, bare, or the rest of a header.

A placeholder at a value's beginning is passed over and one further on ends the value, so that a forged one shields nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace

from coatcheck.domain.placeholders import PLACEHOLDER
from coatcheck.domain.values import value

MAX_BARE_CHARS = 4_096
"""What is read to judge a value. A secret that is longer is covered to its end (``finder``)."""
MAX_QUOTED_CHARS = 20_000
MAX_LINE_CHARS = 16_384
_MAX_TRAILING = 8
_BARE = re.compile(
    r"""(?x)
    (?: \\ (?! [nrt"'`\\] | u00[0-9a-fA-F]{2} ) | [^\s"'`\\\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af] )+
    """
)
_OPENING = re.compile(r"""(\\*)(["'`])\Z""")
_CUT = re.compile(
    r"[&;](?=[\w.\[\]-]{1,40}=)|,(?=[\w.-]{1,40}[=:])|&&|&amp;|</|<br|\?(?=[\w.-]{1,40}=)|\)(?=[;,.)\]}])|\}\}(?=[,;])|(?=\[REDACTED:[a-z0-9-]{1,40}:[0-9a-f]{16}\])"
)
_LINE_END = re.compile(r"[\r\n]|\\[nr]")
_TRAILING = ".,;:)]}>|"
_BALANCE = {")": "(", "]": "[", "}": "{", ">": "<"}


@value
class Value:
    """A value in a text: ``text[start:end]``, without its quotes."""

    start: int
    end: int
    text: str
    quote: str = ""
    """The quotation mark that it stands in, if any."""
    at: int = -1
    """Where the value as a whole begins, when a placeholder stands before ``start``; else -1."""

    @property
    def begins(self) -> int:
        return self.start if self.at < 0 else self.at

    def part(self, start: int, end: int) -> Value:
        """A part of this value; positions count from its first character."""
        return replace(self, start=self.start + start, end=self.start + end, text=self.text[start:end])


Found = tuple[Value, str] | None
"""A value that is a secret, and of what kind; or none."""


def read(text: str, start: int) -> Value:
    """The value that begins at ``start``. An opening quote may stand right before it, behind any number of backslashes."""
    opening = _OPENING.search(text, max(0, start - 12), start)
    if opening:
        quoted = _read_quoted(text, start, opening[2], len(opening[1]))
        if quoted is not None:
            return apart_from_placeholders(quoted)
    return read_bare(text, start)


def read_bare(text: str, start: int) -> Value:
    """An unquoted value: up to white space, a quote, a line end escaped in JSON, or the next pair of a list of pairs."""
    begins = past_placeholders(text, start)
    found = _BARE.match(text, begins, begins + MAX_BARE_CHARS)
    if not found:
        return Value(begins, begins, "", at=start)
    value = _without_trailing(_cut(found[0]))
    return Value(begins, begins + len(value), value, at=start)


def read_line(text: str, start: int) -> Value:
    """The rest of a header's line: up to the line's end (also one escaped in JSON) or the quote that closes it."""
    opening = _OPENING.search(text, max(0, start - 12), start)
    low = max(0, start - 400)
    mark = opening[2] if opening else _open_quote(text[max(low, text.rfind("\n", low, start)) : start])
    limit = min(len(text), start + MAX_LINE_CHARS)
    found = _LINE_END.search(text, start, limit)
    stop = found.start() if found else limit
    if mark:
        close = text.find(mark, start, stop)
        if close >= 0:
            stop = close
    value = text[start:stop].rstrip(" \t\\")
    return Value(start, start + len(value), value, mark)


def past_placeholders(text: str, start: int) -> int:
    """Where the text goes on behind the placeholders that stand at ``start``, if any do."""
    while text.startswith("[REDACTED:", start):
        found = PLACEHOLDER.match(text, start)
        if not found:
            break
        start = found.end()
    return start


def apart_from_placeholders(value: Value) -> Value:
    """A value without the placeholders at its beginning, up to the next one."""
    if "[REDACTED:" not in value.text:
        return value
    begins = past_placeholders(value.text, 0)
    following = PLACEHOLDER.search(value.text, begins)
    part = value.part(begins, following.start() if following else len(value.text))
    return replace(part, at=value.start)


def _cut(value: str) -> str:
    """A bare value up to where a list of pairs, a tag or a call goes on."""
    for found in _CUT.finditer(value, 1):
        before = value[: found.start()]
        if found[0] != ")" or before.count("(") <= before.count(")"):
            return before
    return value


def _open_quote(before: str) -> str:
    """The quote that is open at the end of a line's beginning: ``curl -H 'Authorization: ...``."""
    for mark in "\"'`":
        if before.count(mark) % 2:
            return mark
    return ""


def _read_quoted(text: str, start: int, mark: str, backslashes: int) -> Value | None:
    """Up to the same mark behind the same number of backslashes: the inner level of escaped JSON ends at its own quote."""
    limit = min(len(text), start + MAX_QUOTED_CHARS)
    at = start
    while True:
        at = text.find(mark, at, limit)
        if at < 0:
            return None
        run = at
        while run > start and text[run - 1] == "\\":
            run -= 1
        if at - run == backslashes or (backslashes == 0 and (at - run) % 2 == 0):
            end = at - backslashes
            value = text[start:end]
            return None if "\n" in value else Value(start, end, value, mark)
        if at - run < backslashes:
            return None
        at += 1


def _without_trailing(value: str) -> str:
    """A bare value without the sentence's or the code's punctuation behind it; a bracket that it opens itself stays."""
    for _ in range(_MAX_TRAILING):
        last = value[-1:]
        if not last or last not in _TRAILING:
            break
        opener = _BALANCE.get(last)
        if opener and value.count(opener) >= value.count(last):
            break
        value = value[:-1]
    return value
