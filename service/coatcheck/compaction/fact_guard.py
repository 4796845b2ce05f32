"""The deterministic gate on reductions: nothing is added, moved or renamed, and every fact that can be recognised survives.

Facts are numbers, identifiers, names, what stands in quotes, placeholders, negations, hedges, conditions and questions, in
their order, each as often as it stood. A negation or hedge is a fact together with what it bears on, the rest of its clause, so
that "do not delete the old one, delete the new one" cannot become "do not delete the new one". Languages: English, Russian,
Chinese. A text in a script whose negations it cannot read is never reduced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.compaction.fact_words import CHINESE, COMMON, CYRILLIC_NEGATION, HEDGES, NEGATIONS, NUMBER_WORDS
from coatcheck.domain.placeholders import PLACEHOLDER

_TOKEN = re.compile(
    r"(?P<placeholder>" + PLACEHOLDER.pattern + r")"
    r"|(?P<han>[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff])"
    r"|(?P<question>[?？])"
    r"|(?P<chunk>[^\s\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff?？]+)"
)
_EDGE = ".,;:!()[]{}<>\"'`*«»“”„‘’…，。；：！、（）【】「」『』《》—–|"
_QUOTED = re.compile(
    r"\"([^\"\n]{1,300})\"|`([^`\n]{1,300})`|«([^»\n]{1,300})»|“([^”\n]{1,300})”|„([^“”\n]{1,300})[“”]|‘([^’\n]{1,300})’"
    r"|「([^」\n]{1,300})」|『([^』\n]{1,300})』|《([^》\n]{1,300})》|(?<!\w)'([^'\n]{1,300})'(?!\w)"
)
_IDENTIFIER = re.compile(
    r"[0-9_/\\@#$%&=+~^]|[A-Za-zА-Яа-яё][.:][A-Za-zА-Яа-яё]|[a-zа-яё][A-ZА-ЯЁ]|[A-ZА-ЯЁ]{2}|^--?\w|\w-\w|[^\W\d]\("
)
_UNREAD_SCRIPT = re.compile(r"[\u0370-\u03ff\u0530-\u1dff\u2c00-\u2dff\u3040-\u30ff\u3130-\u318f\ua000-\ud7ff]")
"""Greek, Armenian to Georgian and everything between, kana, Hangul: scripts other than Latin, Cyrillic and Han."""
_CONTRACTED_NOT = re.compile(r"n['’]t$")

_HAN = re.compile(r"[\u3400-\u9fff]")
_CLAUSE_ENDS = ",.;:!—–，。；：！、"
_CLAUSE_END = re.compile(r"[,.;:!?—–，。；：！？、]")
_CLAUSE_WORDS = 8
_CLAUSE_CHARACTERS = 16
_STANDALONE = frozenset(("token", "quoted", "number"))

Fact = tuple[str, ...]


def survives(source: str, reduced: str) -> bool:
    """Whether a reduction keeps every recognised fact of its source and holds nothing that the source does not."""
    if _UNREAD_SCRIPT.search(source):
        return False
    return _is_subsequence(_words(reduced), _words(source)) and facts(source) == facts(reduced)


def supports(source: str, sentence: str) -> bool:
    """Whether every number, identifier, name and quotation of a sentence stands in the source: the guard of generated text."""
    known = set(facts(source))
    return all(fact in known for fact in facts(sentence) if fact[0] in _STANDALONE)


def facts(text: str) -> list[Fact]:
    """The recognised facts of a text, in their order."""
    tokens = _tokens(text)
    found = [fact for position in range(len(tokens)) if (fact := _fact(tokens, position)) is not None]
    found += [("quoted", next(group for group in match.groups() if group is not None)) for match in _QUOTED.finditer(text)]
    found += _chinese(text)
    return found


@dataclass(slots=True)
class _Token:
    """A chunk between white space without the punctuation at its edges, or a single Han or kana character."""

    kind: str
    text: str
    ends_clause: bool


def _fact(tokens: Sequence[_Token], position: int) -> Fact | None:
    token = tokens[position]
    if token.kind == "placeholder":
        return ("token", token.text)
    if token.kind == "question":
        return ("question",)
    if token.kind == "han":
        return None
    word = token.text.lower().replace("’", "'")
    if word in NEGATIONS or _CONTRACTED_NOT.search(word) or CYRILLIC_NEGATION.fullmatch(word):
        return ("negation", word, *_rest_of_clause(tokens, position))
    if word in HEDGES:
        return ("hedge", word, *_rest_of_clause(tokens, position))
    if word in NUMBER_WORDS:
        return ("number", word)
    if _IDENTIFIER.search(token.text) or (token.text[0].isupper() and word not in COMMON):
        return ("token", token.text)
    return None


def _rest_of_clause(tokens: Sequence[_Token], position: int) -> list[str]:
    """The words that say something, up to the clause's end: what a negation may bear on."""
    words: list[str] = []
    while not tokens[position].ends_clause and position + 1 < len(tokens) and len(words) < _CLAUSE_WORDS:
        position += 1
        token = tokens[position]
        if token.kind == "question":
            break
        if token.text.lower() not in COMMON:
            words.append(token.text)
    return words


def _chinese(text: str) -> list[Fact]:
    if not _HAN.search(text):
        return []
    compact = re.sub(r"\s+", "", text)
    found: list[Fact] = []
    for match in CHINESE.finditer(compact):
        end = _CLAUSE_END.search(compact, match.end(), match.end() + _CLAUSE_CHARACTERS)
        stop = end.start() if end else match.end() + _CLAUSE_CHARACTERS
        found.append(("chinese", match[0], compact[match.end() : stop]))
    return found


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "chunk"
        bare = match[0].strip(_EDGE) if kind == "chunk" else match[0]
        ends_clause = kind == "chunk" and match[0][-1] in _CLAUSE_ENDS
        if bare:
            found.append(_Token(kind, bare, ends_clause))
        elif found and any(char in _CLAUSE_ENDS for char in match[0]):
            found[-1].ends_clause = True
    return found


def _words(text: str) -> list[str]:
    return [token.text for token in _tokens(text) if token.kind != "question"]


def _is_subsequence(inner: Sequence[str], outer: Sequence[str]) -> bool:
    remaining = iter(outer)
    return all(token in remaining for token in inner)
