"""The deterministic gate on reductions: nothing is added, moved or renamed, and every fact that can be recognised survives.

It answers with a verdict that says what is wrong, by kind and never by content, so that it can be recorded beside the entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from coatcheck.compaction.fact_tokens import Token, tokens
from coatcheck.compaction.fact_words import FactKind
from coatcheck.compaction.facts import Fact, facts, kind_of_token, phrases
from coatcheck.compaction.languages import understood
from coatcheck.domain.values import value

_LEAST_TELLING = frozenset((FactKind.CLAUSE, FactKind.WORD))


class Wrong(StrEnum):
    """How a reduction departs from its source."""

    ADDED = "added"
    MOVED = "moved"
    MISSING = "missing"
    CHANGED = "changed"
    """The fact stands there, and what it is about does not."""
    UNREAD = "unread"
    """The source is in a language whose facts are not known."""


@value
class Fault:
    """One departure: what kind of fact, and what became of it."""

    wrong: Wrong
    kind: FactKind

    def __str__(self) -> str:
        return f"{self.wrong.value}:{self.kind.value}"


@value
class Verdict:
    """The faults of a reduction, each once, the most telling first; none where its facts are those of the source."""

    faults: tuple[Fault, ...] = ()

    @property
    def kept(self) -> bool:
        return not self.faults


def compare(source: str, reduced: str) -> Verdict:
    """Whether a reduction keeps every recognised fact of its source and holds nothing that the source does not."""
    if source == reduced:
        return Verdict()
    read, shorter = tokens(source), tokens(reduced)
    if not understood(source, read):
        return Verdict((Fault(Wrong.UNREAD, FactKind.WORD),))
    faults = _strangers(read, shorter)
    faults += _differing(facts(source, read), facts(reduced, shorter))
    if not faults and not _is_subsequence(phrases(shorter), phrases(read)):
        faults.append(Fault(Wrong.CHANGED, FactKind.CLAUSE))
    return Verdict(tuple(sorted(dict.fromkeys(faults), key=lambda fault: fault.kind in _LEAST_TELLING)))


def survives(source: str, reduced: str) -> bool:
    """Whether every fact survives, without the reasons."""
    return compare(source, reduced).kept


def states(text: str) -> FactKind | None:
    """The first thing that a text states as far as is recognised, names left aside; a text that is not understood states any."""
    read = tokens(text)
    if not understood(text, read):
        return FactKind.WORD
    kinds = (_named(fact.kind, fact.text) for fact in facts(text, read))
    return next((kind for kind in kinds if kind is not FactKind.NAME), None)


def _strangers(read: Sequence[Token], shorter: Sequence[Token]) -> list[Fault]:
    """The words of the reduction that the source does not have, or has elsewhere."""
    words = [token for token in read if token.kind != "question"]
    said = [token for token in shorter if token.kind != "question"]
    if _is_subsequence((token.text for token in said), (token.text for token in words)):
        return []
    known = Counter(token.text for token in words)
    known.subtract(token.text for token in said)
    added = [token for token in said if known[token.text] < 0]
    return [Fault(Wrong.ADDED, kind_of_token(token)) for token in added] or [Fault(Wrong.MOVED, FactKind.WORD)]


def _differing(stood: Sequence[Fact], stands: Sequence[Fact]) -> list[Fault]:
    """What became of the source's facts: gone, come, about something else, or in another order."""
    if stood == stands:
        return []
    missing, added = Counter(_bare(stood)), Counter(_bare(stands))
    both = missing & added
    gone = [Fault(Wrong.MISSING, _named(kind, text)) for kind, text in missing - both]
    come = [Fault(Wrong.ADDED, _named(kind, text)) for kind, text in added - both]
    if gone or come:
        return gone + come
    if Counter(stood) == Counter(stands):
        return [Fault(Wrong.MOVED, _named(a.kind, a.text)) for a, b in zip(stood, stands, strict=True) if a != b][:1]
    changed = Counter(stood) - Counter(stands)
    return [Fault(Wrong.CHANGED, _named(fact.kind, fact.text)) for fact in changed]


def _bare(found: Iterable[Fact]) -> Iterable[tuple[FactKind, str]]:
    return ((fact.kind, "" if fact.kind is FactKind.CLAUSE else fact.text) for fact in found)


def _named(kind: FactKind, text: str) -> FactKind:
    return kind_of_token(Token("chunk", text, False)) if kind is FactKind.IDENTIFIER else kind


def _is_subsequence(inner: Iterable[str], outer: Iterable[str]) -> bool:
    remaining = iter(outer)
    return all(token in remaining for token in inner)
