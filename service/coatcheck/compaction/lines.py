"""Which lines stand under "Worth recalling": the best that fit, no source more than its share, in the window's order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from coatcheck.compaction import calls, candidates
from coatcheck.compaction.candidates import Candidate
from coatcheck.compaction.instructions import reads_like_an_instruction
from coatcheck.compaction.navigation import line_cost
from coatcheck.compaction.quotable import EARLIER, OPEN, Quotable, with_state
from coatcheck.compaction.quoting import ELLIPSIS, around, one_line, shorten, word_end
from coatcheck.compaction.ranking import Ranking
from coatcheck.domain.messages import PartKind
from coatcheck.domain.runs import HandoffLine

HASH_DIGITS = 12
LINES_OF_A_SOURCE = 2
LINES_OF_A_MESSAGE = 2
MAX_LINES = 16

_LONGEST_LINE_CHARS = 140
_SHORTEST_LINE_CHARS = 60
_EARLIER_SHARE = 0.4
"""Of the room, what rules of earlier handoffs may take before this window's own lines."""
_LEAST_OF_A_RULE = 50
"""The score of rules, corrections, open requests and plain errors; what is marked more faintly competes with identifiers."""
_WORDY_CHARS = 16
_FOLLOWING_CHARS = 120
_LONGEST_TOOL_CHARS = 80
_SEGMENTS_READ_FOR_IDENTIFIERS = 120
_CHARS_READ = 1_500_000
"""Of a window of many megabytes, how much of the newest text of the assistant and of tools is read for lines."""
_EARLIER_LINE = re.compile(r"[0-9a-f]{12} (system|developer|user|assistant|tool)(?:: (.*))?")


def choose(
    quotables: Sequence[Quotable], earlier: Sequence[HandoffLine], focus: str | None, manifest_id: UUID, room: int
) -> list[HandoffLine]:
    """The lines, earlier handoffs' first, then this window's in its order; ``room`` counts each with its dash and line break."""
    selection = _Selection(room, manifest_id, {quotable.sha256 for quotable in quotables})
    ranked = _rank_earlier(earlier, has_newer_turn=any(quotable.role == "user" for quotable in quotables))
    rules = [carried for carried in ranked if carried.score >= _LEAST_OF_A_RULE]
    selection.offer_earlier(rules, int(room * _EARLIER_SHARE))
    ranking = Ranking(candidates.by_signal(quotables if focus else _worth_reading(quotables), focus), selection.may_take)
    selection.offer(ranking.down_to(_LEAST_OF_A_RULE))
    if selection.has_room:
        open_ones = [quotable for quotable in quotables if selection.may_take(quotable)]
        ranking.add(candidates.by_identifier(open_ones[-_SEGMENTS_READ_FOR_IDENTIFIERS:]))
        selection.offer(ranking.down_to(0))
    selection.offer_earlier(ranked, room)
    return selection.in_order()


def _worth_reading(quotables: Sequence[Quotable]) -> list[Quotable]:
    """What the user and the system said, and the newest of everything else."""
    read: list[Quotable] = []
    chars = 0
    for quotable in reversed(quotables):
        if quotable.role in ("assistant", "tool"):
            chars += len(quotable.text)
            if chars > _CHARS_READ:
                continue
        read.append(quotable)
    return read[::-1]


class _Selection:
    def __init__(self, room: int, manifest_id: UUID, present: set[str]) -> None:
        self._room = room
        self._taken = 0
        self._manifest_id = manifest_id
        self._present = present
        self._line_chars = max(_SHORTEST_LINE_CHARS, min(_LONGEST_LINE_CHARS, room // 3))
        self._earlier: list[tuple[int, HandoffLine]] = []
        self._own: list[tuple[int, int, HandoffLine]] = []
        self._of_source: Counter[str] = Counter()
        self._of_message: Counter[int] = Counter()
        self._segments: set[str] = set()
        self._said: set[str] = set()

    @property
    def has_room(self) -> bool:
        return len(self._own) + len(self._earlier) < MAX_LINES and self._room - self._taken > line_cost("") + HASH_DIGITS + 24

    def offer(self, ranked: Iterable[Candidate]) -> None:
        withheld: list[Candidate] = []
        for candidate in ranked:
            if not self.has_room:
                return
            said = self._say(candidate)
            if said is None:
                withheld.append(candidate)
            elif said not in self._said:
                self._take(candidate, said)
        for candidate in withheld:  # by hash and role only, and after everything that can be quoted
            if self.has_room and self.may_take(candidate.quotable):
                self._take(candidate, "")

    def offer_earlier(self, ranked: Sequence[_Carried], limit: int) -> None:
        taken_before = self._taken
        for carried in ranked:
            line = carried.line
            key = line.sha256 or line.text
            if key in self._segments or (line.sha256 is not None and line.sha256 in self._present):
                continue
            cost = line_cost(line.text)
            if not self.has_room or self._taken + cost > self._room or self._taken - taken_before + cost > limit:
                continue
            if carried.role == "tool" and self._of_source["earlier"] >= LINES_OF_A_SOURCE:
                continue
            if carried.role == "tool":
                self._of_source["earlier"] += 1
            self._segments.add(key)
            self._taken += cost
            self._earlier.append((carried.order, line))

    def in_order(self) -> list[HandoffLine]:
        earlier = [line for _, line in sorted(self._earlier, key=lambda item: item[0])]
        return earlier + [line for _, _, line in sorted(self._own, key=lambda item: item[:2])]

    def may_take(self, quotable: Quotable) -> bool:
        """Whether a line of it may be taken: once it may not, it never may."""
        if quotable.sha256 in self._segments or self._of_message[quotable.position] >= LINES_OF_A_MESSAGE:
            return False
        source = _source(quotable)
        return source is None or self._of_source[source] < LINES_OF_A_SOURCE

    def _say(self, candidate: Candidate) -> str | None:
        """What the line says; None where it may not be quoted."""
        quotable = candidate.quotable
        start, end = candidate.start, candidate.end
        line = quotable.quote(start, end)
        if reads_like_an_instruction(line, quotable.role):
            return None
        # "Exit code 1" and a user's "Here is the issue:" say little without what follows. What a tool announces is anybody's.
        if len(line) < _WORDY_CHARS if quotable.role == "tool" else line.endswith((":", "：")):
            stop = word_end(quotable.text, end + _FOLLOWING_CHARS, end)
            following = quotable.quote(end, stop).removeprefix(ELLIPSIS)
            if following and not reads_like_an_instruction(f"{line} {following}", quotable.role):
                line = f"{line} {following}"
        before = ELLIPSIS * line.startswith(ELLIPSIS) + one_line(quotable.text[start : candidate.hit_start])
        width = self._line_chars - HASH_DIGITS - len(quotable.role) - 3
        if quotable.kind is PartKind.TOOL_CALL:
            return self._of_call(candidate, line, before, width)
        shown = around(line, min(len(before), len(line)), min(len(before) + 20, len(line)), width)
        return shorten(with_state(quotable, shown), width) if candidate.state_matters else shown

    def _of_call(self, candidate: Candidate, line: str, before: str, width: int) -> str:
        """The tool and what it was called on, then what was found in the call where that is something else."""
        quotable = candidate.quotable
        tool = f"{shorten(one_line(quotable.source[: 2 * _LONGEST_TOOL_CHARS]), _LONGEST_TOOL_CHARS)} " if quotable.source else ""
        told = calls.describe(quotable.text)
        found = one_line(quotable.text[candidate.hit_start : candidate.hit_end])
        if told is None or reads_like_an_instruction(told, quotable.role):
            return around(tool + line, len(tool) + min(len(before), len(line)), len(tool) + min(len(before) + 20, len(line)), width)
        said = shorten(tool + told, width if found in told else width // 2)
        if found in told:
            return said
        return f"{said} {around(line, min(len(before), len(line)), min(len(before) + 20, len(line)), width - len(said) - 1)}"

    def _take(self, candidate: Candidate, said: str) -> None:
        quotable = candidate.quotable
        text = f"{quotable.sha256[:HASH_DIGITS]} {quotable.role}" + (f": {said}" if said else "")
        if self._taken + line_cost(text) > self._room:
            return
        self._taken += line_cost(text)
        self._segments.add(quotable.sha256)
        if said:
            self._said.add(said)
        self._of_message[quotable.position] += 1
        source = _source(quotable)
        if source is not None:
            self._of_source[source] += 1
        self._own.append((quotable.position, candidate.start, HandoffLine(text, quotable.sha256, self._manifest_id)))


def _source(quotable: Quotable) -> str | None:
    """What may fill a handoff with its own words: a tool, by its name, in its calls or in its results."""
    if quotable.role == "tool":
        return f"result:{quotable.source or ''}"
    return f"call:{quotable.source}" if quotable.source is not None else None


@dataclass(frozen=True, slots=True)
class _Carried:
    """A line of an earlier handoff, as the next one would say it."""

    score: float
    order: int
    role: str
    line: HandoffLine


def _rank_earlier(lines: Sequence[HandoffLine], *, has_newer_turn: bool) -> list[_Carried]:
    """Best first, the newer first among equals. What was open when it was quoted may be done by now."""
    ranked: list[_Carried] = []
    for order, line in enumerate(lines):
        match = _EARLIER_LINE.fullmatch(line.text)
        role, said = (match[1], match[2] or "") if match else ("tool", line.text)
        if has_newer_turn and said.startswith(OPEN):
            said = EARLIER + said.removeprefix(OPEN)
            line = HandoffLine(f"{line.text[:HASH_DIGITS]} {role}: {said}", line.sha256, line.manifest_id)
        ranked.append(_Carried(candidates.rank_text(said, role) if said else 0.0, order, role, line))
    return sorted(ranked, key=lambda carried: (-carried.score, -carried.order))
