"""The facts of a text: what a shorter form of it has to hold as well, in the same order, each as often.

A word that turns, weakens, conditions or counts what is said (a negation, a hedge, a modal, a condition, a quantity) is a fact
together with its clause: "the cache works, the queue does not" must not become "the cache does not". A number is one together
with the words beside it, so that a limit stays that limit and milliseconds stay milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from coatcheck.compaction import evidence
from coatcheck.compaction.fact_tokens import Token, clauses
from coatcheck.compaction.fact_words import CHINESE, CHINESE_FILLERS, COMMON, FactKind, kind_of_chinese, kind_of_word
from coatcheck.domain.values import value

_QUOTED = re.compile(
    r"\"([^\"\n]{1,300})\"|`([^`\n]{1,300})`|«([^»\n]{1,300})»|“([^”\n]{1,300})”|„([^“”\n]{1,300})[“”]|‘([^’\n]{1,300})’"
    r"|「([^」\n]{1,300})」|『([^』\n]{1,300})』|《([^》\n]{1,300})》|(?<!\w)'([^'\n]{1,300})'(?!\w)"
)
_IDENTIFIER = re.compile(
    r"[0-9_/\\@#$%&=+~^<>≤≥≈±]|[A-Za-zА-Яа-яё][.:][A-Za-zА-Яа-яё]|[a-zа-яё][A-ZА-ЯЁ]|[A-ZА-ЯЁ]{2}|^--?\w|\w-\w|[^\W\d]\("
)
_COUNTS = re.compile(r"[-+±~≈<>≤≥=$€£¥₽№#]{0,3}[0-9]")
_BINDING = frozenset(
    (FactKind.NEGATION, FactKind.HEDGE, FactKind.MODAL, FactKind.CONDITION, FactKind.QUANTITY, FactKind.RELATION)
)  # fmt: skip
"""Kinds that are nothing without their clause."""
OBLIGING = frozenset(("have", "has", "had", "having"))
"""Modals before "to", and nothing without it."""
_BESIDE = 2
"""Words before and after a number that go with it: ``limit`` and ``ms`` in "the limit is 5 ms"."""
_NAMED_BY_EVIDENCE = {"path": FactKind.PATH, "url": FactKind.ADDRESS, "address": FactKind.ADDRESS, "date": FactKind.DATE}


@value
class Fact:
    """One fact; ``beside`` are the words that it goes with."""

    kind: FactKind
    text: str
    beside: tuple[str, ...] = ()


def facts(text: str, read: Sequence[Token]) -> list[Fact]:
    """The recognised facts of a text, in their order; ``read`` are its tokens."""
    found: list[Fact] = []
    for clause in clauses(read):
        found += of_clause(clause)
    found += [
        Fact(FactKind.QUOTED, next(group for group in match.groups() if group is not None)) for match in _QUOTED.finditer(text)
    ]
    return found


def quoted(text: str) -> list[tuple[int, int]]:
    """Where the quoted names of a text stand, their quotes included."""
    return [match.span() for match in _QUOTED.finditer(text)]


def phrases(read: Sequence[Token]) -> Iterator[str]:
    """What the clauses with Han characters say in them, without the fillers."""
    for clause in clauses(read):
        said = CHINESE_FILLERS.sub("", "".join(token.text for token in clause if token.kind == "han"))
        if said:
            yield said


def kind_of_token(token: Token) -> FactKind:
    """What a token is when it stands alone: for the reason of a refusal, too dear for every token of every text."""
    text = token.text
    word = word_of(text)
    if token.kind == "placeholder":
        return FactKind.PLACEHOLDER
    if token.kind == "han":
        match = CHINESE.fullmatch(text)
        return FactKind.WORD if match is None else kind_of_chinese(match)
    named = kind_of_word(word) if is_fact(token, word) else FactKind.WORD
    if named is not None:
        return named
    shown = evidence.find(text, text.lower())
    if shown in _NAMED_BY_EVIDENCE:
        return _NAMED_BY_EVIDENCE[shown]
    if _COUNTS.match(text):
        return FactKind.NUMBER
    return FactKind.IDENTIFIER if _IDENTIFIER.search(text) else FactKind.NAME


def of_clause(clause: Sequence[Token]) -> list[Fact]:
    """The facts of one clause, quoted names left aside; a CLAUSE among them where the clause's words may not go either."""
    found: list[Fact] = []
    chinese = "".join(token.text for token in clause if token.kind == "han")
    binds = False
    for place, token in enumerate(clause):
        if token.kind == "han":
            continue
        if token.kind == "question":
            found.append(Fact(FactKind.QUESTION, "?"))
            continue
        word = word_of(token.text)
        if word in OBLIGING and place + 1 < len(clause) and word_of(clause[place + 1].text) == "to":
            binds = True
            found.append(Fact(FactKind.MODAL, "have to"))
            continue
        if not is_fact(token, word):
            continue
        kind = kind_of_word(word) if token.kind == "chunk" else FactKind.PLACEHOLDER
        if kind is None:
            counts = counts_something(token)
            binds = binds or (counts and bool(chinese))
            found.append(Fact(FactKind.IDENTIFIER, token.text, _beside(clause, place) if counts and not chinese else ()))
        else:
            binds = binds or kind in _BINDING
            found.append(Fact(kind, word if kind is not FactKind.PLACEHOLDER else token.text))
    for match in CHINESE.finditer(chinese):
        binds = True
        found.append(Fact(kind_of_chinese(match), match[0]))
    if binds:
        spaced = [token.text for token in clause if token.kind in ("chunk", "placeholder") and says_something(token)]
        found.append(Fact(FactKind.CLAUSE, CHINESE_FILLERS.sub("", chinese), tuple(spaced)))
    return found


def is_fact(token: Token, word: str) -> bool:
    """Whether a chunk or a placeholder may not go: a word that does something, an identifier or number, a name."""
    if token.kind == "placeholder" or kind_of_word(word) is not None:
        return True
    return _IDENTIFIER.search(token.text) is not None or (token.text[0].isupper() and word not in COMMON)


def _beside(clause: Sequence[Token], place: int) -> tuple[str, ...]:
    """The nearest words that say something before a number, then those after it."""
    before, after = beside(clause, place)
    return (*(clause[near].text for near in reversed(before)), "|", *(clause[near].text for near in after))


def beside(clause: Sequence[Token], place: int) -> tuple[list[int], list[int]]:
    """The places of the words that go with a number: before it and after it, the nearest first."""
    return _nearest(clause, range(place - 1, -1, -1)), _nearest(clause, range(place + 1, len(clause)))


def _nearest(clause: Sequence[Token], places: range) -> list[int]:
    found: list[int] = []
    for place in places:
        if len(found) == _BESIDE:
            break
        if clause[place].kind == "chunk" and says_something(clause[place]):
            found.append(place)
    return found


def counts_something(token: Token) -> bool:
    """Whether a word is a number, with its sign or currency."""
    return _COUNTS.match(token.text) is not None


def says_something(token: Token) -> bool:
    """Whether a word may not go from a clause whose words are bound."""
    return token.kind == "placeholder" or word_of(token.text) not in COMMON


def word_of(text: str) -> str:
    """As the lexicon has it."""
    return text.lower().replace("’", "'")
