"""Views: a text as a reader would take it, with the way back to the original's positions.

The *plain* view folds full-width and styled letters, typographic quotes and lone surrogates, one to one, and leaves out what
nobody sees: zero-width and control characters, soft hyphens, terminal colours. The *decoded* view reads percent, Unicode,
hex, octal and HTML escapes. The *joined* view puts string literals together that code concatenates. Two more have files of their
own: ``encoded`` and ``wrapped``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import NamedTuple

from coatcheck.domain.values import value


class Replacement(NamedTuple):
    """A stretch of a text, and what it reads as."""

    start: int
    end: int
    text: str


@value
class View:
    """A text and, for each of its characters, where it begins and ends in the original. ``None`` means the same position."""

    text: str
    starts: list[int] | None = None
    ends: list[int] | None = None

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]`` stands in the original."""
        if self.starts is None or self.ends is None or start >= end:
            return start, end
        return self.starts[start], self.ends[end - 1]

    def replaced(self, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> View:
        """A view of this view in which each match reads as ``by`` says; every new character spans the whole match."""
        return self.rewritten(Replacement(found.start(), found.end(), by(found)) for found in pattern.finditer(self.text))

    def rewritten(self, replacements: Iterable[Replacement]) -> View:
        """As ``replaced``, of stretches in order."""
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        position = 0
        for first, last, new in replacements:
            self._copy(position, first, pieces, starts, ends)
            if new:
                start, end = self.origin(first, last)
                pieces.append(new)
                starts.extend([start] * len(new))
                ends.extend([end] * len(new))
            position = last
        if not position:
            return self
        self._copy(position, len(self.text), pieces, starts, ends)
        return View("".join(pieces), starts, ends)

    def _copy(self, start: int, end: int, pieces: list[str], starts: list[int], ends: list[int]) -> None:
        pieces.append(self.text[start:end])
        if self.starts is None or self.ends is None:
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
        else:
            starts.extend(self.starts[start:end])
            ends.extend(self.ends[start:end])


def plain(text: str) -> View:
    """The view that every text is scanned in. ASCII without control characters is its own view."""
    if text.isascii():
        if len(text.encode().translate(None, _UNSEEN_ASCII)) == len(text) and not ("\\" in text and _COLOUR_AS_TEXT.search(text)):
            return View(text)
        return View(text).replaced(_UNSEEN, _nothing)
    if not _UNUSUAL.search(text):
        return View(text)
    text = _FOLDED.sub(_folded, text)
    return View(text).replaced(_UNSEEN, _nothing)


def decoded(view: View) -> View | None:
    """The view with its escapes read, two layers deep; None where there are none."""
    text = view.text
    if not (
        ("%" in text and _PERCENT.search(text))
        or ("\\" in text and _BACKSLASH.search(text))
        or ("&" in text and _ENTITY.search(text))
    ):
        return None
    once = view.replaced(_ESCAPE, _unescaped)
    if once is view:
        return None
    return once.replaced(_ESCAPE, _unescaped) if "%" in once.text else once


def joint_at(text: str, end: int) -> bool:
    """Whether a string literal that ends at ``end`` is concatenated with another one."""
    return _JOINT.match(text, end) is not None


def joined(view: View) -> View | None:
    """The view with concatenated string literals put together; None where there are none."""
    result = view.replaced(_JOINT_IN_LIST if "join" in view.text else _JOINT, _nothing)
    return None if result is view else result


def _folded(found: re.Match[str]) -> str:
    return _FOLDS.get(found[0], found[0])


def _nothing(_: re.Match[str]) -> str:
    return ""


_COLOUR = r"\\(?:u001[bB]|x1[bB]|033|e)\[[0-9;]{0,20}m"
_COLOUR_AS_TEXT = re.compile(_COLOUR)
_HTML_NAMES = {"amp": "&", "quot": '"', "apos": "'", "lt": "<", "gt": ">"}


def _unescaped(found: re.Match[str]) -> str:
    hexadecimal, decimal, name = found["hex"] or found["long_hex"] or found["html_hex"], found["decimal"], found["name"]
    if name:
        return _HTML_NAMES[name]
    if found["slash"]:
        return "/"
    octal = found["octal"]
    code = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)
    return chr(code) if 0x20 <= code < 0x7F else found[0]


def _folds() -> dict[str, str]:
    """Every character whose compatibility form is one ASCII character, spaces, quotes, and what is no scalar value."""
    ranges = (range(0xFF01, 0xFF5F), range(0x2100, 0x2150), range(0x2460, 0x2500), range(0x1D400, 0x1D800))
    folds: dict[str, str] = {}
    for code in (code for codes in ranges for code in codes):
        form = unicodedata.normalize("NFKC", chr(code))
        if len(form) == 1 and form.isascii():
            folds[chr(code)] = form
    folds.update(dict.fromkeys(map(chr, (0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)), " "))
    folds.update(dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'))
    folds.update(dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"))
    folds.update(dict.fromkeys(map(chr, range(0xD800, 0xE000)), "\ufffd"))
    return folds


_FOLDS = _folds()
_FOLDED_CLASS = (
    "\u00a0\u2000-\u200a\u2018-\u201f\u202f\u2032\u2033\u205f\u2100-\u214f\u2460-\u24ff\u3000\uff01-\uff5e"
    "\U0001d400-\U0001d7ff\ud800-\udfff"
)
_UNSEEN_CLASS = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_FOLDED = re.compile(f"[{_FOLDED_CLASS}]")
_UNUSUAL = re.compile(f"[{_FOLDED_CLASS}{_UNSEEN_CLASS}]|{_COLOUR}")

_UNSEEN_ASCII = bytes(code for code in (*range(0x20), 0x7F) if code not in b"\t\n\v\f\r")
_UNSEEN = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\-_])?"  # terminal sequences
    rf"|{_COLOUR}"  # ... and as text
    f"|[{_UNSEEN_CLASS}]"
)
_PERCENT = re.compile(r"%(?:u00)?[2-7][0-9a-fA-F]")
_BACKSLASH = re.compile(r"\\(?:u(?:00|\{0*)[2-7]|x\{?[2-7]|/|U0{6}[2-7]|1[0-7]{2}|0[4-7][0-7])")
_ENTITY = re.compile(r"&(?:#|amp;|quot;|apos;|lt;)")
_ESCAPE = re.compile(
    r"""(?x)
      (?: %(?:u00)? | \\+u00 | \\+U0{6} | \\+x ) (?P<hex>[2-7][0-9a-fA-F])
    | \\+[ux]\{0{0,6}(?P<long_hex>[2-7][0-9a-fA-F])\}
    | \\+(?P<octal>1[0-7]{2} | 0[4-7][0-7])
    | &\#[xX](?P<html_hex>[0-9a-fA-F]{2,4}); | &\#(?P<decimal>[0-9]{2,4}); | &(?P<name>amp|quot|apos|lt|gt);
    | \\(?P<slash>/)
    """
)
_JOINT_PATTERN = r"""(?x)
    (?<=[\w+/=.~\\-]) \\* ["'`]                          # the end of a literal that ends in a token's character
    [ \t]* (?: \\? \r?\n [ \t]* )? (?: OPERATOR )? [ \t]* (?: \\? \r?\n [ \t]* )?
    [bBfFrRuU]? \\* ["'`] (?=[\w+/=~-])
    """
_JOINT = re.compile(_JOINT_PATTERN.replace("OPERATOR", r"\+ | \.{1,2} | & | \|\|"))
_JOINT_IN_LIST = re.compile(_JOINT_PATTERN.replace("OPERATOR", r"\+ | \.{1,2} | & | \|\| | ,"))
"""Where a text joins lists, their items are concatenated, too."""
