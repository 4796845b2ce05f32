"""The *unwrapped* views: stretches around places where a terminal or a mailer broke a line inside of a word, without the break.

A line is taken for broken where none in its text is longer and what ends it and begins the next could be one word of a secret.
Only what reaches over such a place counts in these views: everything else has been read in the text as it stands.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from coatcheck.compaction.redaction.shapes import is_hash_or_uuid, is_opaque, word_share
from coatcheck.compaction.redaction.view import Replacement, View
from coatcheck.domain.values import value

NARROWEST = 56
"""Nobody wraps lines earlier than this."""
_AROUND = 240
"""Characters on each side of a break that are read."""
_MOST = 40
_USUAL_WIDTHS = frozenset((64, 70, 72, 76, 78, 79, 80, 90, 96, 100, 110, 120, 128, 132, 140, 150, 160, 180, 200))
"""Of terminals, mails and formatters. With any other one a line alone is just the longest of its text."""
_LETTERS = string.ascii_letters + string.digits + "_+/=.~%:@!#$*^-"
_BEGINNING = re.compile(rf"[{re.escape(_LETTERS)}]{{1,200}}")
_RECORD = re.compile(r"\d{4}[-/]\d\d|\d\d?[:/]\d\d|\d{2,}[. ]|[A-Z][a-z]{2} +\d|\[")
"""How a log's next line begins: with a time, a number, a bracket."""
_REST_OF_A_NAME = re.compile(r"""[\w.-]{1,40}["'\\]{0,3}[ \t]*[:=][ \t]*["'\\]{0,3}""")
_DIGIT = re.compile(r"[0-9]")


@value
class Unwrapped:
    """A view without the breaks, and where in it they were."""

    view: View
    joints: tuple[int, ...]

    def spans_a_break(self, start: int, end: int) -> bool:
        """Whether a secret lies over a break, or what names it does: nothing but the rest of a name stands between."""
        return any(
            start < joint < end or (joint <= start and _REST_OF_A_NAME.fullmatch(self.view.text, joint, start))
            for joint in self.joints
        )


def unwrapped(view: View) -> Iterator[Unwrapped]:
    """One for each group of breaks that lie close together."""
    breaks = _breaks(view.text)
    while breaks:
        group = [breaks.pop(0)]
        while breaks and breaks[0][0] - group[-1][1] <= _AROUND:
            group.append(breaks.pop(0))
        low, high = max(0, group[0][0] - _AROUND), min(len(view.text), group[-1][1] + _AROUND)
        part = View(
            view.text[low:high],
            list(range(low, high)) if view.starts is None else view.starts[low:high],
            list(range(low + 1, high + 1)) if view.ends is None else view.ends[low:high],
        )
        removed, joints = 0, []
        for first, last in group:
            joints.append(first - low - removed)
            removed += last - first
        yield Unwrapped(part.rewritten(Replacement(first - low, last - low, "") for first, last in group), tuple(joints))


def _breaks(text: str) -> list[tuple[int, int]]:
    """Where lines of the greatest width end inside of what could be one word, and where the next one goes on."""
    lines = text.split("\n")
    widths = list(map(len, lines))
    widths[-1] = 0
    width = max(widths)
    found: list[tuple[int, int]] = []
    at = number = 0
    times = widths.count(width) if width >= NARROWEST else 0
    is_sure = times > 1 or width in _USUAL_WIDTHS
    for _ in range(min(times, _MOST)):
        before, number = number, widths.index(width, number) + 1
        at += sum(widths[before:number]) + number - before
        bare = lines[number - 1].removesuffix("\r")
        if _goes_on(bare, lines[number].removesuffix("\r"), is_sure=is_sure):
            found.append((at - 1 - (width - len(bare)), at))
    return found


def _goes_on(line: str, following: str, *, is_sure: bool) -> bool:
    if line[-1:] not in _LETTERS or line[:3] == following[:3] or _RECORD.match(following):
        return False
    beginning = _BEGINNING.match(following)
    if beginning is None or (len(beginning[0]) >= 32 and is_hash_or_uuid(beginning[0])):
        return False
    if not is_sure and ("=" in beginning[0].rstrip("=") or not is_opaque(beginning[0], 12)):
        return False
    tail = line[-200:]
    end = tail[len(tail.rstrip(_LETTERS)) :]
    if len(end) == len(tail) and len(beginning[0]) == len(following) == len(line):
        return False  # inside of a block of Base64 or hex, which is read by its beginning
    word = end + beginning[0]
    return len(word) >= 12 and _DIGIT.search(word) is not None and word_share(word) < 0.8
