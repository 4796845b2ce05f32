"""Buckets: the few shapes that graphs are captured for. An input is padded to the least one that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.domain.errors import GpuUnfit

DEFAULT_TOKENS = (64, 128, 192, 256)
"""The article's on FP8."""


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """Of a batch of token ids."""

    tokens: int
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Buckets:
    """Shapes, the least first."""

    shapes: tuple[Shape, ...]

    @classmethod
    def of(cls, tokens: Sequence[int] | None = None, *, most_tokens: int, rows: Sequence[int] = (1,)) -> Buckets:
        """Every length with every count of rows. Without lengths, those by default that the model reads.

        Raises GpuRefused for a length that is above what the model reads, for one that is named twice, and for none.
        """
        if tokens is None:
            tokens = [length for length in DEFAULT_TOKENS if length <= most_tokens] or [most_tokens]
        for name, given in (("lengths", tokens), ("rows", rows)):
            if not given or min(given) < 1 or len(set(given)) < len(given):
                raise GpuUnfit(f"Buckets with the {name} {list(given)}: they are different numbers above 0, at least one.")
        if max(tokens) > most_tokens:
            raise GpuUnfit(f"A bucket of {max(tokens)} tokens is above the {most_tokens} that the model reads.")
        return cls(tuple(sorted(Shape(length, count) for length in tokens for count in rows)))

    def fitting(self, shape: Shape) -> Shape | None:
        """The least bucket that holds this shape; None where none does."""
        found = [one for one in self.shapes if one.tokens >= shape.tokens and one.rows >= shape.rows]
        return min(found, key=lambda one: (one.tokens * one.rows, one), default=None)
