"""The words of a sentence as a claim is compared by them: what it speaks of, by stems, and the small words that turn it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from coatcheck.compaction.fact_tokens import Token
from coatcheck.compaction.fact_words import CHINESE, COMMON, FactKind, kind_of_chinese, kind_of_word

_LONGEST_WORD = 64
NUMERAL = re.compile(r"\d")
_HYPOTHETICAL = frozenset(
    (
        "if", "unless", "until", "till", "only", "provided", "whether", "otherwise", "else", "or", "either", "если", "пока",
        "только", "лишь", "или", "либо", "ли", "иначе", "如果", "假如", "若", "或者", "或", "只有", "只", "仅",
        "僅", "直到", "否则", "一旦",
    )
)  # fmt: skip
REPORTS = re.compile(
    r"\b(?:ask|request|want|wish|told|tell|instruct|require|need|task|goal|plan|should|must|to do)\w*|\b(?:про[сш]|попро[сш]|"
    r"хо[чт]|нужн|надо|задач|треб|должн|поруч)\w*|要求|请|請|让|讓|想|需要|任务|任務|应该|必须"
)
"""That something was asked for, and not that it was done."""

_DUTY = re.compile(
    r"(?:must|should|shall|may|can|ought|need|needs|needed|required?|requires|allowed|permitted|want|wants|wanted)\Z"
    r"|долж|нуж|надо|обязан|следует|треб|разреш|хо[тч]|必须|必須|应该|應該|应当|應當|要|需|允许"
)


def stems(read: Iterable[Token]) -> Iterable[str]:
    """The words that say something, by their beginnings; of Han characters each two that follow each other."""
    last = ""
    for token in read:
        if token.kind == "han":
            if last:
                yield last + token.text
            last = "" if token.ends_clause else token.text
            continue
        last = ""
        word = token.text.lower().replace("’", "'")
        if token.kind == "placeholder" or (token.kind == "chunk" and word not in COMMON and kind_of_word(word) is None):
            yield _stem(word) if word.isalpha() and len(word) <= _LONGEST_WORD else word


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    """Of a word of letters, what its forms have in common."""
    english, russian = _stemmers()
    stem: str = (english if word.isascii() else russian).stem_word(word)
    return stem


@cache
def _stemmers() -> tuple[Any, Any]:
    from py_rust_stemmers import SnowballStemmer

    return SnowballStemmer("english"), SnowballStemmer("russian")


def of_kind(read: Iterable[Token], kind: FactKind) -> list[str]:
    """The words of a kind, in lower case, each as often as it stands there."""
    return [word for word, found in _functions(read) if found is kind]


def is_duty(modal: str) -> bool:
    """Whether a modal says that something is to be done or left: how a request or a prohibition is told."""
    return _DUTY.match(modal) is not None


def is_hypothetical(read: Iterable[Token]) -> bool:
    return any(word in _HYPOTHETICAL for word, found in _functions(read) if found is FactKind.CONDITION)


def _functions(read: Iterable[Token]) -> Iterable[tuple[str, FactKind]]:
    """The words that turn, weaken or condition what is said."""
    run = ""
    for token in read:
        if token.kind == "han":
            run += token.text
            continue
        word = token.text.lower().replace("’", "'")
        kind = kind_of_word(word) if token.kind == "chunk" else None
        if kind is not None:
            yield word, kind
    for match in CHINESE.finditer(run):
        yield match[0], kind_of_chinese(match)


def has_question(read: Iterable[Token]) -> bool:
    return any(token.kind == "question" for token in read)
