"""Prose with a label for each of its words: needed, or not. Written for the tests; nothing of it is anybody's conversation.

What is not needed: small words and fillers in three languages, and phrases that only lead on to what is said. Everything else is.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

from coatcheck.compaction.expendable import Word, words
from coatcheck.compaction.fact_words import COMMON
from tests.compaction.prose import CHINESE, RUSSIAN, english

_LEADING_ON = frozenset(
    (
        "basically", "actually", "essentially", "honestly", "generally", "simply", "literally", "frankly", "indeed", "certainly",
        "clearly", "obviously", "however", "therefore", "furthermore", "moreover", "additionally", "course", "fact", "matter",
        "mind", "worth", "mentioning", "noting", "see", "know", "say", "speaking", "way", "same", "time", "point", "quick", "nice",
        "useful", "interesting", "собственно", "вообще", "короче", "говоря", "разумеется", "итак",
    )
)  # fmt: skip
_OPENINGS = (
    "As you can see,", "Of course,", "In fact,", "By the way,", "To be honest,", "As a matter of fact,", "Well,", "So basically",
    "It is worth mentioning that", "At the same time,", "Generally speaking,", "At this point", "As you know,",
)  # fmt: skip
_SUBJECTS = (
    "the gateway", "our scheduler", "this parser", "the old index", "my script", "the deployment", "their client", "the worker",
    "the cache layer", "a background job", "the login page", "the build", "the report", "the message queue", "the new module",
)  # fmt: skip
_VERBS = (
    "reads", "writes", "compares", "loads", "parses", "sends", "collects", "rebuilds", "checks", "stores", "sorts", "renders",
    "validates", "copies", "merges", "retries",
)  # fmt: skip
_OBJECTS = (
    "the configuration", "incoming requests", "every record of the table", "user sessions", "the test results", "log entries",
    "its own state", "the tokens", "a list of names", "the remaining pages", "large files", "the response headers",
)  # fmt: skip
_ENDINGS = (
    "in the background", "on each start", "with the help of a small library", "at the end of the day", "as it is",
    "for the rest of the team", "on the second node", "in this case", "as well", "and so on", "just like that", "in memory",
)  # fmt: skip


def texts(count: int) -> list[str]:
    """The tests' own prose in three languages, and so many made paragraphs."""
    return [*english(), *RUSSIAN, *CHINESE, *paragraphs(count)]


def paragraphs(count: int, seed: int = 1) -> list[str]:
    """Made of parts, in English."""
    chance = random.Random(seed)
    return [_paragraph(chance) for _ in range(count)]


@cache
def needed(text: str) -> list[tuple[Word, bool]]:
    """The words of a text, each with its label."""
    return [(word, not _is_filler(text, word)) for word in words(text)]


def _is_filler(text: str, word: Word) -> bool:
    said = text[word.start : word.end].lower()
    return said in COMMON or said in _LEADING_ON or (word.may_go and said[0] > "\u3000")


def _paragraph(chance: random.Random) -> str:
    return " ".join(_sentence(chance) for _ in range(chance.randint(2, 5)))


def _sentence(chance: random.Random) -> str:
    opening = chance.choice(_OPENINGS) if chance.random() < 0.5 else ""
    said = _joined(chance, (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS)) if opening else _joined(chance, (_SUBJECTS, _VERBS, _OBJECTS))
    return f"{opening} {said}." if opening else f"{said[0].upper()}{said[1:]}."


def _joined(chance: random.Random, tables: Sequence[Sequence[str]]) -> str:
    return " ".join(chance.choice(table) for table in tables)
