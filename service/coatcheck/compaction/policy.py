"""The policy: the routes' labels and thresholds, what is protected, how far text is reduced, and when it may be left out.

A value, made from a document (``policy_document``), so that whatever decided a run has one name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from coatcheck.domain.routes import Route


@dataclass(frozen=True, slots=True)
class Label:
    """One label of the classifier: the text that it reads, and the route that it speaks for."""

    route: Route
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """The least score of an opinion that is followed, and its least lead over the best label of another route; in [0, 1]."""

    score: float
    margin: float


@dataclass(frozen=True, slots=True)
class DropConditions:
    """When text may be left out of what is retained. Not ``enabled``: never."""

    enabled: bool
    bar: Bar
    max_chars: int


@dataclass(frozen=True, slots=True)
class Policy:
    """What a model may decide about a text, and how sure it has to be."""

    version: str
    digest: str
    """SHA-256 over the whole document, defaults included."""
    labels: Mapping[str, Label]
    compress: Bar
    drop: DropConditions
    protections: frozenset[str]
    """The names of the evidence that keeps a text from the models."""
    reduction_rate: float
    entailment_margin: float

    def without_drop(self) -> Policy:
        """The same policy for text that is in somebody's keeping already: whatever it allows, nothing of that is left out."""
        return dataclasses.replace(self, drop=dataclasses.replace(self.drop, enabled=False))

    @property
    def revision(self) -> str:
        """How a run names its policy: the version, and the first 16 digits of the digest."""
        return f"{self.version}-{self.digest[:16]}"

    @property
    def label_texts(self) -> tuple[str, ...]:
        return tuple(label.text for label in self.labels.values())
