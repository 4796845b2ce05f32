"""Lines that an agent will most likely need, each with a score: what the lexicon marks, what the focus names, identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from coatcheck.compaction import evidence, lexicon
from coatcheck.compaction.lexicon import Signal
from coatcheck.compaction.quotable import Quotable
from coatcheck.compaction.quoting import word_end, word_start
from coatcheck.compaction.requests import asks
from coatcheck.compaction.weights import (
    LISTING_SHARE,
    focus_weight,
    heaviest,
    identifier_weight,
    is_listing,
    line_weight,
    signal_weight,
)
from coatcheck.domain.messages import PartKind
from coatcheck.domain.values import value

_OPEN_REQUEST = 96
_RECENCY_BONUS = 6
_FIRST_LINE = 10

_WORD = re.compile(r"[^\W_]{2,}")
_HAN_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{2,}")

_PLACES_OF_A_PHRASE = 4
_LINE_CHARS = 200
"""A longer line is read only this far, from its start or around what was found in it: a handoff's line has room for less."""
_REQUEST_CHARS = 600
"""Of a line, as much is read for what its user asks."""
_IDENTIFIER_LINES = 20
_LEAST_WORDY_CHARS = 6


@value
class Candidate:
    """One stretch of a segment that may become a line: the line around [start, end), and the places found in it."""

    score: float
    quotable: Quotable
    start: int
    end: int
    hit_start: int
    hit_end: int
    state_matters: bool
    """False for a standing rule of the user's, which no later turn closes."""


@value
class Mark:
    """A line in which something was found, not weighed yet."""

    quotable: Quotable
    line: _Line
    focus_weight: float
    recency: float

    @property
    def start(self) -> int:
        return self.line.start

    @property
    def at_most(self) -> float:
        """No less than what it will weigh."""
        return heaviest(self.line.weight, self.line.signals) + self.focus_weight + self.recency

    def weighed(self) -> Candidate:
        line = self.line
        weight = line_weight(self.quotable.text[line.start : line.end], line.weight, line.signals, self.quotable.kind)
        return Candidate(
            weight + self.focus_weight + self.recency,
            self.quotable,
            line.start,
            line.end,
            line.hit_start,
            line.hit_end,
            state_matters=not line.is_rule,
        )


def by_signal(quotables: Sequence[Quotable], focus: str | None) -> list[Mark]:
    """Lines with decisions, prohibitions, corrections, errors, open requests, and lines that the focus names."""
    terms = focus_terms(focus)
    return [
        mark
        for order, quotable in enumerate(quotables)
        for mark in _of_one(quotable, terms, _RECENCY_BONUS * (order + 1) / len(quotables))
    ]


def by_identifier(quotables: Sequence[Quotable]) -> list[Candidate]:
    """For each segment its line with most identifiers, else its first."""
    found: list[Candidate] = []
    for order, quotable in enumerate(quotables):
        most, start, end = -1, 0, 0
        for line_start, line_end, line in _first_lines(quotable.text, _LINE_CHARS):
            count = evidence.identifiers(line, most + 1)
            if count > most:
                most, start, end = count, line_start, line_end
        if most < 0:
            continue
        recency = _RECENCY_BONUS * (order + 1) / len(quotables)
        score = (identifier_weight(most) or _FIRST_LINE) * (LISTING_SHARE if is_listing(quotable.text[start:end]) else 1)
        rank = {"user": 4, "assistant": 2}.get(quotable.role, 0)
        found.append(Candidate(score + recency + rank, quotable, start, end, start, start, state_matters=True))
    return found


def focus_terms(focus: str | None) -> tuple[str, ...]:
    """The words of a focus in lower case; of scripts without spaces, its pairs of characters."""
    if not focus:
        return ()
    lowered = focus.lower()
    terms = {word for word in _WORD.findall(lowered) if not _HAN_RUN.search(word)}
    for run in _HAN_RUN.findall(lowered):
        terms.update(run[at : at + 2] for at in range(len(run) - 1))
    return tuple(sorted(terms))


def rank_text(text: str, role: str) -> float:
    """The score of a line that an earlier handoff quoted, by the same weights."""
    lowered = lexicon.lower(text)
    found = [hit.signal for hit in lexicon.hits(lowered, limit=1) if hit.signal is not Signal.OPEN]
    strongest = max((signal_weight(signal, role) for signal in found), default=0)
    by_signals = line_weight(text, strongest, set(found), PartKind.TEXT)
    return max(by_signals, identifier_weight(evidence.identifiers(text)), _FIRST_LINE)


def _of_one(quotable: Quotable, terms: tuple[str, ...], recency: float) -> Iterator[Mark]:
    text = quotable.text
    lowered = lexicon.lower(text)
    found: dict[int, _Line] = {}
    for hit in lexicon.hits(lowered, limit=_PLACES_OF_A_PHRASE):
        weight = _weight(hit.signal, quotable)
        if weight:
            _line_at(found, text, hit.start, hit.end).add(hit.signal, weight, hit.start, hit.end)
    for term in terms:
        place = lowered.find(term)
        for _ in range(_PLACES_OF_A_PHRASE):
            if place < 0:
                break
            _line_at(found, text, place, place + len(term)).terms.add(term)
            place = lowered.find(term, place + len(term))
    if quotable.begins_message and quotable.role == "user" and not quotable.answered and quotable.in_last_turn:
        _add_open_request(found, text)
    for line in found.values():
        yield Mark(quotable, line, focus_weight(len(line.terms), len(terms)), recency)


class _Line:
    """What was found in one line."""

    __slots__ = ("end", "hit_end", "hit_start", "signals", "start", "terms", "weight")

    def __init__(self, start: int, end: int, hit_start: int, hit_end: int) -> None:
        self.start, self.end = start, end
        self.hit_start, self.hit_end = hit_start, hit_end
        self.weight = 0
        self.signals: set[Signal] = set()
        self.terms: set[str] = set()

    def add(self, signal: Signal, weight: int, hit_start: int, hit_end: int) -> None:
        self.signals.add(signal)
        if weight > self.weight:
            self.weight, self.hit_start, self.hit_end = weight, hit_start, hit_end

    @property
    def is_rule(self) -> bool:
        return not self.signals.isdisjoint((Signal.PROHIBITION, Signal.DECISION, Signal.CORRECTION))


def _add_open_request(found: dict[int, _Line], text: str) -> None:
    """The line in which the user asks, else the first one."""
    lines = list(_first_lines(text, _REQUEST_CHARS))
    if not lines:
        return
    start, end, _ = next((line for line in lines if asks(line[2])), lines[0])
    line = found.setdefault(start, _Line(start, end, start, start))
    line.weight = max(line.weight, _OPEN_REQUEST)


def _weight(signal: Signal, quotable: Quotable) -> int:
    if signal is Signal.OPEN and not (quotable.in_last_turn and quotable.kind is PartKind.TEXT):
        return 0  # what was left to do in an earlier turn may have been done since
    return signal_weight(signal, quotable.role)


def _line_at(found: dict[int, _Line], text: str, hit_start: int, hit_end: int) -> _Line:
    """The line around a place, or what may be read of it."""
    start = text.rfind("\n", max(0, hit_start - _LINE_CHARS), hit_start) + 1
    if start == 0 and hit_start > _LINE_CHARS:
        start = word_start(text, hit_start - _LINE_CHARS // 2, hit_start)
    line = found.get(start)
    if line is None:
        end = text.find("\n", hit_end, hit_end + _LINE_CHARS)
        if end < 0:
            end = word_end(text, min(len(text), hit_end + _LINE_CHARS), hit_end)
        line = found[start] = _Line(start, end, hit_start, hit_end)
    return line


def _first_lines(text: str, max_chars: int) -> Iterator[tuple[int, int, str]]:
    """The first few lines that say something, as far as they are read: where each starts and ends, and what it says."""
    start = 0
    for _ in range(_IDENTIFIER_LINES):
        end = text.find("\n", start)
        stop = len(text) if end < 0 else end
        if stop > start + max_chars:
            stop = word_end(text, start + max_chars, start)
        line = text[start:stop]
        if len(line.strip()) >= _LEAST_WORDY_CHARS:
            yield start, stop, line
        if end < 0:
            return
        start = end + 1
