"""The deterministic gate on reductions: nothing is added, moved or renamed, and every fact that can be recognised survives.

Facts are numbers, identifiers, names, what stands in quotes, placeholders, negations, hedges, conditions and questions, in
their order, each as often as it stood. A negation or hedge is a fact together with the word that it bears on, so that
"is not down and is up" cannot become "is not up". Languages: English, Russian, Chinese. A text in a script whose negations it
cannot read is never reduced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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

Fact = tuple[str, ...]


def survives(source: str, reduced: str) -> bool:
    """Whether a reduction keeps every recognised fact of its source and holds nothing that the source does not."""
    if _UNREAD_SCRIPT.search(source):
        return False
    source_tokens, reduced_tokens = _tokens(source), _tokens(reduced)
    return _is_subsequence(_words(reduced_tokens), _words(source_tokens)) and facts(source) == facts(reduced)


def supports(source: str, sentence: str) -> bool:
    """Whether every number, identifier, name and quotation of a sentence stands in the source: the guard of generated text."""
    known = {fact for fact in facts(source) if fact[0] in _STANDALONE}
    return all(fact in known for fact in facts(sentence) if fact[0] in _STANDALONE)


_STANDALONE = frozenset(("token", "quoted", "number"))


def facts(text: str) -> list[Fact]:
    """The recognised facts of a text, in their order."""
    tokens = _tokens(text)
    found = [fact for position in range(len(tokens)) if (fact := _fact(tokens, position)) is not None]
    found += [("quoted", next(group for group in match.groups() if group is not None)) for match in _QUOTED.finditer(text)]
    found += _chinese(text)
    return found


def _fact(tokens: Sequence[tuple[str, str]], position: int) -> Fact | None:
    kind, token = tokens[position]
    if kind == "placeholder":
        return ("token", token)
    if kind == "question":
        return ("question",)
    if kind == "han":
        return None
    word = token.lower().replace("’", "'")
    if word in NEGATIONS or _CONTRACTED_NOT.search(word) or CYRILLIC_NEGATION.fullmatch(word):
        return ("negation", word, _borne_on(tokens, position))
    if word in HEDGES:
        return ("hedge", word, _borne_on(tokens, position))
    if word in NUMBER_WORDS:
        return ("number", word)
    if _IDENTIFIER.search(token) or (token[0].isupper() and word not in COMMON):
        return ("token", token)
    return None


def _borne_on(tokens: Sequence[tuple[str, str]], position: int) -> str:
    """The next word that says something: what a negation negates. It may stand in a later clause; then both texts agree."""
    for kind, token in tokens[position + 1 : position + 12]:
        if kind == "chunk" and token.lower() not in COMMON:
            return token
        if kind != "chunk":
            return token
    return ""


def _chinese(text: str) -> list[Fact]:
    if not any("\u3400" <= char <= "\u9fff" for char in text):
        return []
    compact = re.sub(r"\s+", "", text)
    return [("chinese", match[0], compact[match.end() : match.end() + 2]) for match in CHINESE.finditer(compact)]


def _tokens(text: str) -> list[tuple[str, str]]:
    """(kind, token): chunks between white space without the punctuation at their edges, single Han and kana characters."""
    return list(_iterate_tokens(text))


def _iterate_tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "chunk"
        token = match[0]
        if kind == "chunk":
            token = token.strip(_EDGE)
            if not token:
                continue
        yield kind, token


def _words(tokens: Sequence[tuple[str, str]]) -> list[str]:
    return [token for kind, token in tokens if kind != "question"]


def _is_subsequence(inner: Sequence[str], outer: Sequence[str]) -> bool:
    remaining = iter(outer)
    return all(token in remaining for token in inner)
