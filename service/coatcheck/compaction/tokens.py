"""How many tokens a window has: counted where there is a counter, else estimated from its characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coatcheck.compaction import stages
from coatcheck.domain.canonical import encode, scalar_text
from coatcheck.domain.plans import PlanWarning
from coatcheck.domain.ports import TokenCounter

ESTIMATOR = "estimate:chars/4"
TOKENS_PER_BLOB = 1_200
"""What providers charge for an image of ordinary size (765 to 1,600); its base64 says nothing about it."""
_TOKENS_PER_NON_ASCII_BYTE = 0.3
"""Two bytes of Cyrillic are about 0.6 of a token, three bytes of Han about 0.9, four bytes of an emoji about 1.2."""


@dataclass(frozen=True, slots=True)
class Tokens:
    count: int
    counter: str
    estimated: bool


def count(texts: Sequence[str], blobs: int, counter: TokenCounter | None) -> tuple[Tokens, list[PlanWarning]]:
    """The tokens of all texts; blobs are always estimated, by their number."""
    warnings: list[PlanWarning] = []
    if counter is not None:
        asked = stages.ask(lambda: [counter.count([scalar_text(text) for text in texts])])
        if asked.answer is not None:
            return Tokens(asked.answer[0] + blobs * TOKENS_PER_BLOB, counter.name, blobs > 0), []
        warnings.append(stages.unavailable("token counter", asked, "tokens are estimated"))
    return Tokens(estimate(texts) + blobs * TOKENS_PER_BLOB, ESTIMATOR, True), warnings


def estimate(texts: Iterable[str]) -> int:
    """About a quarter of the ASCII characters, and more for scripts that tokenisers know less well."""
    ascii_chars = 0
    other_bytes = 0
    for text in texts:
        if text.isascii():
            ascii_chars += len(text)
        else:
            of_text = len(text.encode("ascii", "ignore"))
            ascii_chars += of_text
            other_bytes += len(encode(text)) - of_text
    return int(ascii_chars / 4 + other_bytes * _TOKENS_PER_NON_ASCII_BYTE)
