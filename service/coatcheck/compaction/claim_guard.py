"""The deterministic gate on generated sentences: whether a passage says what one claims, as far as that can be read off words.

A sentence is freer than a reduction: it may put things in other words and in another order. So it is held against the sentence
of the passage that it shares most words with: its facts stand there, what is denied, doubted, conditional, asked for or asked
stays so, and its numbers keep the company that they have there. What this lets through the entailment gate still has to find
entailed; what a model of that gate is known to let through (a dropped negation, two numbers exchanged) is stopped here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from coatcheck.compaction import lexicon
from coatcheck.compaction.claim_words import NUMERAL, REPORTS, has_question, is_duty, is_hypothetical, of_kind, stems
from coatcheck.compaction.fact_tokens import Token, clauses, tokens
from coatcheck.compaction.fact_words import FactKind
from coatcheck.compaction.facts import facts
from coatcheck.compaction.languages import understood
from coatcheck.compaction.lexicon import Signal
from coatcheck.compaction.requests import asks
from coatcheck.domain.values import value

_STANDALONE = frozenset((FactKind.PLACEHOLDER, FactKind.IDENTIFIER, FactKind.NUMBER, FactKind.UNIT, FactKind.DATE, FactKind.QUOTED))
_LEAST_GROUND = 0.6
"""Of the words of a sentence that say something, the share that stands in the passage: less is another text's, or nobody's."""
_COMPANY_TOKENS = 30
"""How far before a number the words may stand that it goes with."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]{0,3}\s+|(?<=[。！？｡])|\n+")
_COMPANY_ENDS = frozenset(("and", "but", "while", "whereas", "или", "or", "и", "а", "но"))


class Objection(StrEnum):
    """Why a passage does not carry a sentence."""

    UNREAD = "unread"
    """The sentence is in a language whose negations are not known."""
    FACT = "fact"
    """A number, name, identifier or quotation stands in the sentence and not in the passage."""
    GROUND = "ground"
    """Too little of what it says stands there at all."""
    NEGATION = "negation"
    HEDGE = "hedge"
    MODAL = "modal"
    CONDITION = "condition"
    QUESTION = "question"
    REQUEST = "request"
    """What was asked for is told as done."""
    ORDER = "order"
    """Its facts stand in another order: who did it to whom may have changed."""
    COMPANY = "company"
    """A number goes with words that it does not go with in the passage."""


@value
class _Said:
    """A sentence as it is compared."""

    text: str
    read: tuple[Token, ...]
    stems: frozenset[str]


def objection(passage: str, sentence: str) -> Objection | None:
    """Why a passage does not carry a sentence; None where nothing speaks against it."""
    if _evened(sentence) in map(_evened, _sentences(passage)):
        return None
    said = _read(sentence)
    if not understood(sentence, said.read):
        return Objection.UNREAD
    whole = _read(passage)
    if not _facts_stand(whole, said):
        return Objection.FACT
    if not said.stems or len(said.stems & whole.stems) < _LEAST_GROUND * len(said.stems):
        return Objection.GROUND
    if not _keeps_company(whole.read, said.read):
        return Objection.COMPANY
    found = (_departure(source, said) for source in _nearest(passage, said))
    return next((departure for departure in found if departure is not None), None)


def _sentences(passage: str) -> list[str]:
    return [text for text in _SENTENCE_END.split(passage) if text and text.strip()]


def _evened(text: str) -> str:
    return " ".join(text.split())


def _read(text: str) -> _Said:
    read = tuple(tokens(text))
    return _Said(text, read, frozenset(stems(read)))


def _nearest(passage: str, said: _Said) -> list[_Said]:
    """The sentences of the passage that share most words with the sentence: one, or several that share as many, and all count."""
    found = [_read(text) for text in _sentences(passage)]
    shared = [len(said.stems & source.stems) for source in found]
    most = max(shared)
    return [source for source, count in zip(found, shared, strict=True) if count == most]


def _departure(source: _Said, said: _Said) -> Objection | None:
    """What the sentence makes of its source that it is not."""
    if has_question(source.read) and not has_question(said.read):
        return Objection.QUESTION
    if of_kind(source.read, FactKind.HEDGE) and not of_kind(said.read, FactKind.HEDGE):
        return Objection.HEDGE
    if is_hypothetical(source.read) and not is_hypothetical(said.read):
        return Objection.CONDITION
    if asks(source.text) and not asks(said.text) and not REPORTS.search(said.text.lower()):
        return Objection.REQUEST
    by_clause = _by_clause(source, said)
    if by_clause is not None:
        return by_clause
    return None if _in_order(source, said) else Objection.ORDER


def _by_clause(source: _Said, said: _Said) -> Objection | None:
    """Each clause of the source against those of the sentence that share most words with it."""
    there = _merged(source.read)
    obliges = asks(source.text) or lexicon.states_a_rule(lexicon.lower(source.text)) is Signal.PROHIBITION
    told: list[list[Token]] = [[] for _ in there]
    for clause in _merged(said.read):
        wanted = set(stems(clause))
        shared = [len(wanted.intersection(stems(other))) for other in there]
        most = max(shared)
        for place, count in enumerate(shared):
            if count == most:
                told[place] += clause
    found = (_turned(other, clause, obliges) for other, clause in zip(there, told, strict=True) if clause)
    return next((departure for departure in found if departure is not None), None)


def _turned(source: Sequence[Token], clause: Sequence[Token], obliges: bool) -> Objection | None:
    """``obliges``: the source asks for something or forbids it, which may well be told by "must"."""
    if len(of_kind(source, FactKind.NEGATION)) != len(of_kind(clause, FactKind.NEGATION)):
        return Objection.NEGATION
    there, here = set(of_kind(source, FactKind.MODAL)), set(of_kind(clause, FactKind.MODAL))
    if not here:
        reports = REPORTS.search(" ".join(token.text.lower() for token in clause)) is not None
        return Objection.MODAL if there and not reports else None
    strange = here - there
    return Objection.MODAL if strange and not (obliges and all(map(is_duty, strange))) else None


def _merged(read: Sequence[Token]) -> list[list[Token]]:
    """The clauses, each that says nothing by itself ("No, it works") taken with the next one, the last with the one before."""
    found: list[list[Token]] = []
    open_clause: list[Token] = []
    for clause in clauses(read):
        open_clause += clause
        if any(stems(open_clause)):
            found.append(open_clause)
            open_clause = []
    if open_clause:
        if found:
            found[-1] = found[-1] + open_clause
        else:
            found.append(open_clause)
    return found


def _facts_stand(whole: _Said, said: _Said) -> bool:
    """Whether every fact of the sentence stands in the passage; the capital of its first word is no name by itself."""
    known = {(fact.kind, fact.text) for fact in facts(whole.text, whole.read)}
    words = {token.text for token in whole.read}
    first = said.read[0].text if said.read else ""
    for fact in facts(said.text, said.read):
        if fact.kind not in _STANDALONE or (fact.kind, fact.text) in known:
            continue
        if fact.text != first or first[:1].lower() + first[1:] not in words:
            return False
    return True


def _in_order(source: _Said, said: _Said) -> bool:
    """Whether names that stand in the one source sentence, and numbers likewise, stand there in the order of the sentence."""
    there = [fact.text for fact in facts(source.text, source.read) if fact.kind in _STANDALONE]
    here = [fact.text for fact in facts(said.text, said.read) if fact.kind in _STANDALONE and fact.text in there]
    for numeral in (False, True):
        remaining = iter([text for text in there if bool(NUMERAL.search(text)) is numeral])
        if not all(text in remaining for text in here if bool(NUMERAL.search(text)) is numeral):
            return False
    return True


def _keeps_company(read: Sequence[Token], said: Sequence[Token]) -> bool:
    """Whether the words around each number, as far as the passage has them, stand around that number there too."""
    known = frozenset(stems(read))
    for place, token in enumerate(said):
        if token.kind != "chunk" or not NUMERAL.search(token.text):
            continue
        here = known.intersection(stems(_company(said, place)))
        there = [frozenset(stems(_company(read, at))) for at, other in enumerate(read) if other.text == token.text]
        if there and not any(here <= company for company in there):
            return False
    return True


def _company(read: Sequence[Token], place: int) -> list[Token]:
    """What a number may go with: what stands between it and the next number on either side, where there is one near.

    What follows it, up to the end of its clause alone where another number comes: that one has words before it too.
    """
    before: list[Token] = []
    for token in reversed(read[max(0, place - _COMPANY_TOKENS) : place]):
        if NUMERAL.search(token.text):
            break
        before.append(token)
    after: list[Token] = []
    for token in read[place + 1 : place + 1 + _COMPANY_TOKENS]:
        if NUMERAL.search(token.text):
            return before + _own_clause(read[place], after)
        after.append(token)
    return before + after


def _own_clause(number: Token, after: Sequence[Token]) -> list[Token]:
    found: list[Token] = []
    ended = number.ends_clause
    for token in after:
        if ended or token.text.lower() in _COMPANY_ENDS:
            break
        found.append(token)
        ended = token.ends_clause
    return found
