"""What a line weighs under "Worth recalling": by what marks it, by who said it, and less where it is source code."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from coatcheck.compaction.lexicon import Signal
from coatcheck.domain.canonical import encode, scalar_text
from coatcheck.domain.messages import PartKind, Role

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

_WEIGHTS: dict[Signal, dict[str, int]] = {
    Signal.PROHIBITION: {"user": 92, "system": 80, "assistant": 62, "tool": 34},
    Signal.CORRECTION: {"user": 90, "system": 60, "assistant": 66, "tool": 30},
    Signal.DECISION: {"user": 84, "system": 56, "assistant": 74, "tool": 32},
    Signal.ERROR: {"user": 34, "system": 10, "assistant": 30, "tool": 32},
    Signal.OPEN: {"user": 0, "system": 0, "assistant": 70, "tool": 0},
}
"""A rule weighs most in the mouth of the one who may set it; a tool's output sets none."""
_STRONG_ERROR_BONUS = 36
_SECOND_SIGNAL_BONUS = 6
_CODE_SHARE = 0.4
"""What a line of source code weighs, in a listing or a call: ``except ValueError:`` reports no error, a comment decides nothing."""
LISTING_SHARE = 0.25
"""What a line of a listing weighs for its identifiers: it says little outside of its file, whose name stands elsewhere."""
_FOCUS_BASE, _FOCUS_SHARE = 40, 80
_IDENTIFIER_BASE, _IDENTIFIER_EACH = 40, 2

_BEGINS = r"(?<!\w{0})\b\s{{0,2}}[:(\[=]"
"""After a word of its own: ``failed:``, ``error [``."""
_STRONG_ERRORS = tuple(
    (word, re.compile(word + rest.format(word)))
    for word, rest in (
        *((word, rf"(?:{_BEGINS}|(?<=\w{{0}})\b: ?\S)") for word in ("error", "exception")),
        *((word, _BEGINS) for word in ("fatal", "failed", "failure", "panic")),
        *((word, r"(?<!\w{0})\W{{0,3}}[45]\d\d\b") for word in ("http", "status")),
        ("exit", r"(?<!\w{0})(?:ed)?(?: with)? (?:code|status) [1-9]"),
        *((word, r"\b") for word in ("not found", "timed out", "refused")),
        *((word, "") for word in ("permission denied", "no such file", "unable to", "ошибка:", "не удалось", "отказано")),
        ("错误", "[:：]"),
        *((word, "") for word in ("失败", "超时")),
    )
)
"""Each with the word that it starts with."""
_LISTING = re.compile(r"\s*\d{1,6}\s?(?:→|\||\t|: )|\s*[-+@]{2,3} |\s*[-+]\s{2,}\S")
"""A numbered line of a file, or a line of a diff."""
_CODE_BEGINS = re.compile(
    r"\s*(?:[-+>#*/]{1,3}\s*)?"
    r"(?:except|raise|catch|throw|import|from|def|class|return|if|elif|else|try|for|while|with|const|let|var|func|fn|public|private|"
    r"static|async|await|assert|self\.|@\w|#include|//|/\*|\*/|</?\w)(?![\w'])"
)
_CODE_ENDS = frozenset(":;{}()[]=,>")
_JSON = re.compile(r"\s*(?:\{\s*\"|\[\s*[{\"])")
_SYMBOLS = b"{}()[]<>=;|%$&\\\"'`_~^"
_SYMBOL_SHARE_OF_CODE = 0.13
"""Measured on lines of Python, Elixir, TypeScript and shell against prose and log lines: code 0.13 to 0.35, others below 0.1."""


def signal_weight(signal: Signal, role: Role | str) -> int:
    """The weight of one phrase of the lexicon, by who said it."""
    return _WEIGHTS[signal]["system" if role == "developer" else role]


def line_weight(line: str, strongest: int, signals: set[Signal], kind: PartKind) -> float:
    """The weight of a line whose strongest phrase weighs so much."""
    weight = heaviest(strongest, signals)
    if Signal.ERROR in signals and not _is_strong_error(line):
        weight -= _STRONG_ERROR_BONUS
    return weight * _CODE_SHARE if kind is PartKind.TOOL_CALL or _is_code(line) else weight


def heaviest(strongest: int, signals: set[Signal]) -> float:
    """What ``line_weight`` says at most, without reading the line."""
    weight = float(strongest)
    if len(signals) > 1:
        weight += _SECOND_SIGNAL_BONUS
    return weight + _STRONG_ERROR_BONUS if Signal.ERROR in signals else weight


def focus_weight(found: int, terms: int) -> float:
    """What a line gains for the focus terms that it holds."""
    return _FOCUS_BASE + _FOCUS_SHARE * found / terms if found else 0.0


def identifier_weight(identifiers: int) -> float:
    """The weight of a line for its identifiers alone."""
    return _IDENTIFIER_BASE + _IDENTIFIER_EACH * identifiers if identifiers else 0.0


def is_listing(line: str) -> bool:
    """Whether it is a numbered line of a file, or a line of a diff."""
    return _LISTING.match(line) is not None


@cache
def _words_of_strong_errors() -> AhoCorasick:
    from ahocorasick_rs import AhoCorasick

    return AhoCorasick([word for word, _ in _STRONG_ERRORS])


def _is_strong_error(line: str) -> bool:
    lowered = line.lower()
    places = _words_of_strong_errors().find_matches_as_indexes(scalar_text(lowered), overlapping=True)
    return any(_STRONG_ERRORS[number][1].match(lowered, start) for number, start, _ in places)


def _is_code(line: str) -> bool:
    stripped = line.rstrip()
    if not stripped or _JSON.match(stripped):
        return False
    if _LISTING.match(stripped):
        return True
    if stripped[-1] in _CODE_ENDS and _CODE_BEGINS.match(stripped):
        return True
    raw = encode(stripped)
    return len(raw) - len(raw.translate(None, _SYMBOLS)) > _SYMBOL_SHARE_OF_CODE * len(stripped)
