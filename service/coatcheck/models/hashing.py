"""An embedder without weights: feature hashing of words and character trigrams.

Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009. Each feature adds its weight, with a sign
from its hash, to one of the dimensions; the vector is scaled to length one. It sees likeness of spelling, not of meaning: for
scale tests and for tests, chosen by its name.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

DIMENSIONS = 384
INPUT_TOKENS = 512
WORD_WEIGHT = 1.0
TRIGRAM_WEIGHT = 0.3

_TOKEN = re.compile(r"\w+|[^\w\s]")


class HashingEmbedder:
    """Embedder port; pure functions of the text."""

    revision = "hashing-1"
    weights: Path | None = None
    dimensions = DIMENSIONS
    input_tokens = INPUT_TOKENS
    threads = 1

    def token_offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return [[token.span() for token in _TOKEN.finditer(text)] for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * DIMENSIONS
        for token, count in Counter(_TOKEN.findall(text.casefold())).items():
            repeated = 1.0 + math.log(count)
            for dimension, weight in _features(token):
                vector[dimension] += weight * repeated
        length = math.sqrt(sum(value * value for value in vector))
        if length == 0.0:
            return [1.0] + [0.0] * (DIMENSIONS - 1)
        return [value / length for value in vector]


def _features(token: str) -> tuple[tuple[int, float], ...]:
    return _features_cached(token) if len(token) <= 32 else _hashed(token)


@lru_cache(maxsize=100_000)
def _features_cached(token: str) -> tuple[tuple[int, float], ...]:
    return _hashed(token)


def _hashed(token: str) -> tuple[tuple[int, float], ...]:
    framed = f"<{token}>"
    features = [(_place(framed), WORD_WEIGHT)]
    features += [(_place(framed[at : at + 3]), TRIGRAM_WEIGHT) for at in range(len(framed) - 2)]
    return tuple((place >> 1, weight if place & 1 else -weight) for place, weight in features)


def _place(feature: str) -> int:
    """Dimension and sign of a feature: one bit for the sign, the rest for the dimension."""
    digest = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
    return (digest >> 1) % DIMENSIONS << 1 | digest & 1
