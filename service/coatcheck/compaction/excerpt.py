"""The deterministic overview in the window's own words: where it begins and ends, its tools, its files, commands and topics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from coatcheck.compaction import landmarks, topics
from coatcheck.compaction.instructions import reads_like_an_instruction
from coatcheck.compaction.landmarks import Landmark
from coatcheck.compaction.navigation import Overview
from coatcheck.compaction.quotable import Quotable, with_state
from coatcheck.compaction.quoting import ELLIPSIS, one_line, shorten
from coatcheck.domain.messages import PartKind

_TOOLS_NAMED = 4
_TOPICS_NAMED = 8
_LONGEST_QUOTE_CHARS = 100
_FILES_SHARE = 0.75
"""Of what the other pieces leave, what the files take where commands follow."""
_MORE = f" {ELLIPSIS}"
"""Behind the names that there was room for."""
_SCAN_CHARS = 2_000
_LEAST_WORDY_CHARS = 8
_ANNOUNCES = (":", "：")
"""A line that ends so says what comes: "Here is the issue:"."""
_ONLY_MARKUP = re.compile(r"[\W\d_]*|<[^<>]{1,100}>(?:.*</[^<>]{1,100}>)?")


def excerpt(quotables: Sequence[Quotable], tool_names: Iterable[str], max_chars: int) -> Overview:
    """Quotes the first line of the user's and the last message of the assistant's, as far as they may be quoted."""
    tools = _tools(tool_names)
    room = max(20, min(_LONGEST_QUOTE_CHARS, (max_chars - len(tools)) // 2 - 20))
    begins = _first(quotables, room)
    ends = _last(quotables, room)
    pieces: list[str] = []
    shas: list[str] = []
    if begins is not None:
        pieces.append(f"begins with {begins[0].role}: {begins[1]}")
        shas.append(begins[0].sha256)
    if ends is not None and (begins is None or ends[0].sha256 != begins[0].sha256):
        pieces.append(f"ends with {ends[0].role}: {ends[1]}")
        shas.append(ends[0].sha256)
    if tools:
        pieces.append(tools)
    named, rests_on = _landmarks(quotables, max_chars - len("; ".join(pieces)) - 2)
    return Overview(shorten("; ".join(pieces + named), max_chars), "excerpt", tuple(dict.fromkeys(shas + rests_on)))


def with_landmarks(overview: Overview, quotables: Sequence[Quotable], max_chars: int) -> Overview:
    """A generated overview, followed by the files, programs and topics that it leaves room for."""
    named, rests_on = _landmarks(quotables, max_chars - len(overview.text) - 1)
    if not named:
        return overview
    text = f"{overview.text} {'; '.join(named)}"
    return Overview(text, overview.source, tuple(dict.fromkeys((*overview.sha256s, *rests_on))))


def _landmarks(quotables: Sequence[Quotable], room: int) -> tuple[list[str], list[str]]:
    """What the window is about, by name, in pieces that fit together; and the segments that this rests on."""
    pieces: list[str] = []
    shas: list[str] = []
    programs = landmarks.programs(quotables)
    for label, named in (
        ("files", landmarks.files(quotables)),
        ("ran", programs),
        ("about", topics.topics(quotables)[:_TOPICS_NAMED]),
    ):
        listed = _listed(label, named, int(room * _FILES_SHARE) if label == "files" and programs else room)
        if listed:
            more = "" if label == "about" or len(listed) == len(named) else _MORE
            pieces.append(f"{label}: {', '.join(landmark.name for landmark in listed)}{more}")
            shas += [landmark.sha256 for landmark in listed]
            room -= len(pieces[-1]) + 2
    return pieces, shas


def _listed(label: str, named: Sequence[Landmark], room: int) -> list[Landmark]:
    """The first that fit; none where they read like an instruction together."""
    listed: list[Landmark] = []
    room -= len(label) + len(_MORE)  # before the first name stands no comma
    for landmark in named:
        if len(landmark.name) + 2 > room:
            break
        room -= len(landmark.name) + 2
        listed.append(landmark)
    together = " ".join(landmark.name for landmark in listed)
    return [] if reads_like_an_instruction(together, "tool") else listed


def _first(quotables: Sequence[Quotable], room: int) -> tuple[Quotable, str] | None:
    for wanted in ("user", "assistant"):
        for quotable in quotables:
            if quotable.role == wanted and quotable.kind is PartKind.TEXT:
                line = _quote(quotable, room)
                if line is not None:
                    return quotable, line
    return None


def _last(quotables: Sequence[Quotable], room: int) -> tuple[Quotable, str] | None:
    for quotable in reversed(quotables):
        if quotable.role in ("assistant", "user") and quotable.kind is PartKind.TEXT:
            line = _quote(quotable, room)
            if line is not None:
                return quotable, line
    return None


def _quote(quotable: Quotable, room: int) -> str | None:
    """The first line that says something and may be quoted."""
    lines = quotable.text[:_SCAN_CHARS].split("\n")
    for place, raw in enumerate(lines):
        line = one_line(raw)
        if place == 0 and quotable.begins_within:
            line = ELLIPSIS + line
        if line.endswith(_ANNOUNCES):
            line = one_line(f"{line} {' '.join(lines[place + 1 : place + 4])}")
        if (
            len(line) >= _LEAST_WORDY_CHARS
            and not _ONLY_MARKUP.fullmatch(line)
            and not reads_like_an_instruction(line, quotable.role)
        ):
            return '"' + shorten(with_state(quotable, line), room - 2) + '"'
    return None


def _tools(names: Iterable[str]) -> str:
    counted = Counter(shorten(one_line(name[:80]), 40) for name in names if name)
    if not counted:
        return ""
    most = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:_TOOLS_NAMED]
    named = ", ".join(f"{name} x{count}" for name, count in most if not reads_like_an_instruction(name, "tool"))
    return f"tools: {named}{_MORE if len(counted) > len(most) else ''}"
