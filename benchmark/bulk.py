"""Text in bulk for the measurements at scale: short notes of made-up words whose frequencies fall as those of language do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate

from coatcheck.domain.canonical import JsonValue

_SYLLABLES = tuple(
    a + b for a in ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z") for b in ("a", "e", "i", "o", "u")
)
_WORDS = 20_000


class Notes:
    """A seeded source of notes; word ranks follow Zipf's law."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(f"notes:{seed}")
        self._words = ["".join(self._draw.choices(_SYLLABLES, k=self._draw.randint(2, 4))) for _ in range(_WORDS)]
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(_WORDS)))

    def note(self, number: int, chars: int) -> str:
        """About ``chars`` characters; the number makes it unlike every other note."""
        words = self._draw.choices(self._words, cum_weights=self._weights, k=max(1, chars // 7))
        return f"note {number}: {' '.join(words)}."

    def windows(self, segments: int, chars: int, messages: int) -> Iterator[list[JsonValue]]:
        """Windows of so many chat messages, each message one segment, user and assistant in turn."""
        for start in range(0, segments, messages):
            yield [
                {"role": "assistant" if number % 2 else "user", "content": self.note(number, chars)}
                for number in range(start, min(segments, start + messages))
            ]

    def queries(self, count: int) -> list[str]:
        """Questions of three to six words."""
        return [
            " ".join(self._draw.choices(self._words, cum_weights=self._weights, k=self._draw.randint(3, 6))) for _ in range(count)
        ]
