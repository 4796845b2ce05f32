"""What a conversation is about, by words that come in clusters: what is only said often is said everywhere.

A word that is a topic is used close together and then not for long, so that the gaps between its uses vary more than those of a
word that is strewn about (Ortuño et al., Keyword detection in natural languages and DNA, Europhysics Letters 57, 2002). It takes no
other text to compare with, and no list of a language's words beyond the small ones.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence

from coatcheck.compaction.fact_words import COMMON, kind_of_word
from coatcheck.compaction.landmarks import Landmark
from coatcheck.compaction.quotable import Quotable
from coatcheck.domain.messages import PartKind

_WORD = re.compile(r"[^\W\d_]{4,30}")
_TEXT_CHARS = 2_000
_TEXTS = 400
_LEAST_USES = 3
_LEAST_TEXTS = 2
_STREWN = 1.0
"""The spread of gaps, over their mean, of a word that is used at random."""
_TELLING_CHARS = 7
"""Shorter words are more general ones, and weigh less."""
_GENERAL = frozenset(
    (
        "able", "action", "actually", "again", "already", "amazing", "anything", "around", "aware", "away", "awesome",
        "back", "because", "being", "best", "better", "both", "bring", "call", "change", "changes", "check", "come",
        "comes", "cool", "different", "doing", "done", "down", "each", "else", "even", "ever", "everyone", "everything",
        "example", "feel", "feels", "file", "files", "find", "first", "following", "forward", "found", "full",
        "getting", "give", "glad", "goes", "gonna", "gotten", "happen", "happened", "happy", "hard", "heard", "help",
        "helps", "important", "into", "issue", "keep", "kind", "know", "left", "life", "like", "line", "lines",
        "little", "long", "look", "looking", "looks", "love", "made", "make", "makes", "making", "mean", "means",
        "more", "much", "myself", "nice", "often", "okay", "ones", "open", "others", "ourselves", "output", "part",
        "people", "person", "place", "point", "pretty", "read", "ready", "real", "return", "right", "same", "says",
        "seen", "show", "shows", "since", "some", "someone", "something", "sometimes", "sound", "sounds", "special",
        "start", "started", "state", "stay", "still", "stuff", "such", "sure", "take", "takes", "taking", "talk",
        "tell", "than", "that", "their", "them", "thing", "things", "think", "those", "through", "time", "times",
        "together", "told", "took", "true", "understand", "update", "using", "value", "wait", "ways", "went", "what",
        "where", "while", "whole", "will", "with", "without", "wonderful", "work", "working", "works", "world", "yeah",
        "your", "yours",
    )
)  # fmt: skip
"""English words that cluster at times and name no topic."""


def topics(quotables: Sequence[Quotable]) -> list[Landmark]:
    """The words that cluster most in what users and assistants write, each with its newest segment."""
    places: dict[str, list[int]] = defaultdict(list)
    newest: dict[str, int] = {}
    texts: dict[str, int] = defaultdict(int)
    count = 0
    read = [quotable for quotable in quotables if quotable.kind is PartKind.TEXT and quotable.role in ("user", "assistant")]
    for number, quotable in enumerate(read[-_TEXTS:]):
        for word in _WORD.findall(quotable.text[:_TEXT_CHARS].lower()):
            count += 1
            places[word].append(count)
            if newest.get(word) != number:
                newest[word] = number
                texts[word] += 1
    weight = {
        word: weighed
        for word, at in places.items()
        if len(at) >= _LEAST_USES and texts[word] >= _LEAST_TEXTS and _names_something(word)
        if (weighed := _weight(word, at, count)) > 0
    }
    ranked = sorted(weight, key=lambda word: (-weight[word], word))
    return [Landmark(word, read[-_TEXTS:][newest[word]].sha256) for word in ranked]


def _names_something(word: str) -> bool:
    return word not in _GENERAL and word not in COMMON and kind_of_word(word) is None


def _weight(word: str, places: Sequence[int], count: int) -> float:
    gaps = [after - before for before, after in zip([0, *places], [*places, count + 1], strict=True)]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) / mean
    return (spread - _STREWN) * math.log(len(places)) * min(1.0, len(word) / _TELLING_CHARS)
