"""Whether a text may be cut at a place without splitting a user-perceived character (UAX #29, as the regex library reads it)."""

from __future__ import annotations

import bisect

import regex

_CLUSTER = regex.compile(r"\p{RI}\p{RI}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*|\X")
"""Flags are matched by hand: \\X looks back over all regional indicators before each, which is quadratic (measured: 0.24 s for
4,000 of them). For the same reason it only ever sees a slice."""
_SURE = regex.compile(
    r"[\p{GCB=Other}\p{GCB=LV}\p{GCB=LVT}](?=[\p{GCB=Other}\p{GCB=LV}\p{GCB=LVT}])"
    r"|[\p{GCB=Control}\p{GCB=LF}]|\p{GCB=CR}(?!\n)"
)
"""Ends at a boundary whatever stands further left (rules GB4 to GB7 and GB999), so that \\X need not start at the text's start."""
_PREPEND = regex.compile(r"\p{GCB=Prepend}")
_LOOK_BACK_CHARS = 64


class Boundaries:
    """The grapheme boundaries of one stretch of a text, found where they are asked for.

    ``start`` must be a boundary itself. Costs are bounded by the stretch, whatever stands in it.
    """

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text = text
        self._start = start
        self._end = end
        self._all: list[int] | None = None

    def at(self, place: int) -> bool:
        """Whether a cut before ``text[place]`` splits no grapheme."""
        if place <= self._start or place >= len(self._text):
            return True
        before, after = self._text[place - 1], self._text[place]
        if " " <= after <= "~" or "\u3400" <= after <= "\u9fff":
            return _PREPEND.match(before) is None  # nothing but GB9b joins a Latin letter or an ideograph to what is before it
        if before < "\x7f" and after < "\x7f":
            return before != "\r" or after != "\n"
        anchor = self._sure_before(place)
        if anchor is None:
            return self.last_up_to(place) == place
        return anchor == place or place in _ends(self._text, anchor, place + 1)[:-1]

    def last_up_to(self, place: int) -> int | None:
        """The last boundary after the start that is not beyond ``place``; None when one grapheme reaches over it."""
        everywhere = self._everywhere()
        position = bisect.bisect_right(everywhere, place)
        return everywhere[position - 1] if position else None

    def first_after(self, place: int) -> int | None:
        """The first boundary beyond ``place``; None when the stretch has none."""
        everywhere = self._everywhere()
        position = bisect.bisect_right(everywhere, place)
        return everywhere[position] if position < len(everywhere) else None

    def _everywhere(self) -> list[int]:
        if self._all is None:
            limit = min(self._end + 1, len(self._text))
            self._all = _ends(self._text, self._start, limit)
            if limit < len(self._text):
                self._all.pop()  # it ends where the reading stopped, perhaps not where the grapheme ends
        return self._all

    def _sure_before(self, place: int) -> int | None:
        earliest = max(self._start, place - _LOOK_BACK_CHARS)
        last: int | None = None
        for match in _SURE.finditer(self._text, earliest, place):
            last = match.end()
        return last


def _ends(text: str, start: int, end: int) -> list[int]:
    """Where the graphemes of ``text[start:end]`` end. The last may go on beyond."""
    return [start + cluster.end() for cluster in _CLUSTER.finditer(text[start:end])]
