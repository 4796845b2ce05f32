"""Which words of a text may go without a fact of it going: what a compressor chooses from.

It reads a text as the fact guard does, so that what the guard asks for is what the compressor keeps. It promises nothing: the
guard reads the shorter text for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from coatcheck.compaction.fact_tokens import Token, clauses, tokens
from coatcheck.compaction.fact_words import CHINESE, CHINESE_FILLERS, FactKind
from coatcheck.compaction.facts import OBLIGING, beside, counts_something, is_fact, of_clause, quoted, says_something, word_of
from coatcheck.compaction.languages import understood
from coatcheck.domain.values import value

_TABLE_ROW = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
"""A row that lost a word would be another row."""


@value
class Word:
    """A word of a text, [start, end) in code points, without the punctuation at its edges; a Han character is one by itself."""

    start: int
    end: int
    may_go: bool


Placed = tuple[Token, int]
"""A token, and where it starts."""


def words(text: str) -> list[Word]:
    """The words of a text in their order. None may go from a text in a language that the guard cannot read."""
    read = tokens(text)
    held = [(0, len(text))] if not understood(text, read) else [*quoted(text), *(row.span() for row in _TABLE_ROW.finditer(text))]
    return list(_holding(_words(text, read), sorted(held)))


def _words(text: str, read: Sequence[Token]) -> Iterator[Word]:
    position = 0
    for clause in clauses(read):
        placed: list[Placed] = []
        for token in clause:
            # Only white space and punctuation stand before it, neither of which a token begins with: the first place is the one.
            position = text.index(token.text, position)
            placed.append((token, position))
            position += len(token.text)
        yield from _of_clause(placed)


def _of_clause(clause: Sequence[Placed]) -> Iterator[Word]:
    free, fillers = _free_words([token for token, _ in clause]), _free_fillers(clause)
    place = 0
    while place < len(clause):
        token, start = clause[place]
        length = fillers.get(place, 0)
        if length:
            yield Word(start, start + length, True)
        elif _is_word(token) or place not in free:
            yield Word(start, start + len(token.text), place in free)
        place += max(length, 1)


def _is_word(token: Token) -> bool:
    """A dash or a bullet is none: where it may go, it stands or falls with the words beside it."""
    return token.kind != "chunk" or any(char.isalnum() for char in token.text)


def _free_words(clause: Sequence[Token]) -> set[int]:
    """The places of the chunks that may go."""
    bound = any(fact.kind in (FactKind.CLAUSE, FactKind.QUESTION) for fact in of_clause(clause))
    if bound and not any(says_something(token) for token in clause if token.kind != "question"):
        return set()  # a question of small words alone: without them there is none
    held = set(_held_places(clause))
    return {
        place
        for place, token in enumerate(clause)
        if token.kind == "chunk" and place not in held and not (bound and says_something(token))
    }


def _held_places(clause: Sequence[Token]) -> Iterator[int]:
    spaced = [token.kind == "chunk" for token in clause]
    for place, token in enumerate(clause):
        word = word_of(token.text)
        if not spaced[place] or not is_fact(token, word):
            if word in OBLIGING and any(word_of(later.text) == "to" for later in clause[place + 1 :]):
                yield from (place, place + 1)  # "have agreed to" may not become "have to"
            continue
        yield place
        if counts_something(token):
            before, after = beside(clause, place)
            yield from before + after


def _free_fillers(clause: Sequence[Placed]) -> dict[int, int]:
    """The lengths of the Chinese fillers that may go, by their places: those that are together and no part of another word."""
    places = [place for place, (token, _) in enumerate(clause) if token.kind == "han"]
    if not places:
        return {}
    chinese = "".join(clause[place][0].text for place in places)
    stated = [match.span() for match in CHINESE.finditer(chinese)]
    found: dict[int, int] = {}
    for match in CHINESE_FILLERS.finditer(chinese):
        first, last = places[match.start()], places[match.end() - 1]
        together = clause[last][1] - clause[first][1] == match.end() - match.start() - 1
        if together and not any(start < match.end() and match.start() < end for start, end in stated):
            found[first] = match.end() - match.start()
    return found


def _holding(found: Iterator[Word], held: Sequence[tuple[int, int]]) -> Iterator[Word]:
    """The words, those held that stand in one of the spans or touch it: a quotation's mark would go with the word beside it."""
    spans = iter(held)
    span = next(spans, None)
    for word in found:
        while span is not None and span[1] < word.start:
            span = next(spans, None)
        inside = span is not None and span[0] <= word.end
        yield Word(word.start, word.end, word.may_go and not inside)
