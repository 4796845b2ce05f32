"""What happens to a segment, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coatcheck.domain.values import value


class Route(StrEnum):
    """KEEP: exact text outside the prompt. COMPRESS: a reduction beside it. DROP: left out of the retained content."""

    KEEP = "keep"
    COMPRESS = "compress"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class RouteScore:
    """A router's opinion of one text: its best label, that label's score in [0, 1] and its lead over the next."""

    route: Route
    score: float
    margin: float


@value
class Decision:
    """The route of one segment with the reason that is recorded beside it (``protected:tool-role``, ``router:weak``...)."""

    route: Route
    reason: str
    protection: str | None = None
    """The name of the evidence that protected the segment before any model ran."""
    scores: tuple[tuple[str, float], ...] = ()
    """The router's score of each label of the policy, by the label's name; empty where it gave none."""


@dataclass(frozen=True, slots=True)
class Entailment:
    """A natural-language-inference verdict: whether the premise entails the hypothesis, and by what lead in [0, 1]."""

    entailed: bool
    margin: float
    reverse: float | None = None
    """How likely the hypothesis entails the premise too, in [0, 1]: low where something was left out. None: not asked."""
    reason: str = ""
    """Why there is no entailment, where it is not the model that says so."""
