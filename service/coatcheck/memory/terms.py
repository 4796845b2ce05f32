"""What a sentence speaks of, by the terms of the lexical leg: words by their stems, identifiers whole, Han by two characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coatcheck.index.tokens import chunks, terms_of

WORD_MIN_CHARS = 3
IDENTIFIER, WORD, PAIR, NUMBER = 2.0, 1.0, 0.5, 0.0
"""What a term that two texts share says of their having one subject. That both say the same number says nothing."""

_NUMBER = re.compile(r"v?\d[\d.,:/%-]*[a-zA-Z]{0,3}")
_IDENTIFIER = re.compile(r"\d|[A-Za-z][._/:@-]{1,3}[A-Za-z]|[a-z][A-Z]|[^\W\d_][_/:][^\W\d_]")
_POSSESSIVE = re.compile(r"['’]s$")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_HAN_PARTICLES = frozenset("的了是在由和把被有不就也都还已从到里我你他她它们这那个为与及等")
_NEGATIONS = frozenset({"not", "nor", "never", "нет", "нельзя"})
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Term:
    """A term as it was written, and what it weighs."""

    shown: str
    weight: float

    @property
    def is_number(self) -> bool:
        return self.weight == NUMBER

    @property
    def is_identifier(self) -> bool:
        return self.weight == IDENTIFIER


Terms = Mapping[int, Term]


def terms_in(text: str) -> Terms:
    """Each once."""
    found: dict[int, Term] = {}
    for chunk in chunks(text):
        written = _POSSESSIVE.sub("", chunk)
        whole = terms_of(written).whole
        if _HAN.match(written):
            pairs = (written[at : at + 2] for at in range(len(written) - 1))
            found |= {term: Term(pair, PAIR) for term, pair in zip(whole, pairs, strict=False) if not _HAN_PARTICLES & set(pair)}
        elif (weight := _weight(written)) is not None:
            found |= {term: Term(written, weight) for term in whole}
    return found


def together(terms: Iterable[Terms]) -> Terms:
    """The terms of several."""
    found: dict[int, Term] = {}
    for one in terms:
        found |= one
    return found


def are_siblings(earlier: Terms, later: Terms) -> bool:
    """Whether the later speaks of worker-9 where the earlier does of worker-7, and not of that."""
    families = {_family(term.shown) for term in later.values() if term.is_identifier}
    return any(
        term.is_identifier and key not in later and _family(term.shown) in families and _DIGITS.search(term.shown)
        for key, term in earlier.items()
    )


def _weight(written: str) -> float | None:
    if _NUMBER.fullmatch(written):
        return NUMBER
    if _IDENTIFIER.search(written):
        return IDENTIFIER
    return WORD if len(written) >= WORD_MIN_CHARS and written.casefold() not in _NEGATIONS else None


def _family(identifier: str) -> str:
    return _DIGITS.sub("0", identifier.casefold())
