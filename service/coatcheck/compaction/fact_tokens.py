"""A text as the fact guard reads it: words without the punctuation at their edges, single Han characters, clause by clause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from coatcheck.domain.placeholders import PLACEHOLDER
from coatcheck.domain.values import value

HAN = r"\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff"
_TOKEN = re.compile(
    r"(?P<placeholder>" + PLACEHOLDER.pattern + r")"
    rf"|(?P<han>[{HAN}])"
    r"|(?P<question>[?？])"
    rf"|(?P<chunk>(?:[^\s{HAN}?？\[]|(?!{PLACEHOLDER.pattern})\[)+)"
)
_EDGE = ".,;:!()[]{}\"'`*«»“”„‘’…，。；：！、（）【】「」『』《》—–|"
_CLAUSE_ENDS = ".,;:!—–，。；：！、"


@value
class Token:
    """``kind`` is placeholder, han, question or chunk (what stands between white space); ``ends_clause`` where its clause does."""

    kind: str
    text: str
    ends_clause: bool


def tokens(text: str) -> list[Token]:
    """The tokens of a text in their order; punctuation alone is none, but it ends the clause before it."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "chunk"
        bare = match[0].strip(_EDGE) if kind == "chunk" else match[0]
        ends_clause = kind == "question" or (kind == "chunk" and match[0][-1] in _CLAUSE_ENDS)
        if kind == "chunk" and found and (match[0][0] in _CLAUSE_ENDS or (ends_clause and not bare)):
            found[-1] = _ending(found[-1])
        if bare:
            found.append(Token(kind, bare, ends_clause))
    return found


def clauses(read: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The tokens between one end of a clause and the next."""
    start = 0
    for position, token in enumerate(read):
        if token.ends_clause or position + 1 == len(read):
            yield read[start : position + 1]
            start = position + 1


def _ending(token: Token) -> Token:
    return token if token.ends_clause else Token(token.kind, token.text, True)
