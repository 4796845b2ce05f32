"""The same text in several sessions is one hit: the best of them stands for all, and says where else the text is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from coatcheck.memory.fusion import Candidate
from coatcheck.store.entries import EntryRef
from coatcheck.store.segments import StoredSegment


@dataclass(frozen=True, slots=True)
class Verified:
    """A candidate with its row: present, visible, not erased, and equal to its hash."""

    candidate: Candidate
    stored: StoredSegment
    entry: EntryRef


@dataclass(frozen=True, slots=True)
class Folded:
    """All that was found of one text, best first. Equal hash, equal bytes: nothing of the others is left out but their place."""

    places: tuple[Verified, ...]

    @property
    def best(self) -> Verified:
        return self.places[0]

    def source(self, own: UUID) -> UUID:
        """Who handed the text in: the caller itself, wherever it did too."""
        sources = [place.entry.principal_id for place in self.places]
        return own if own in sources else sources[0]


def fold(found: Iterable[Verified]) -> list[Folded]:
    """One for each text, in the order of their best."""
    by_text: dict[str, list[Verified]] = {}
    for one in found:
        by_text.setdefault(one.candidate.sha256, []).append(one)
    return [Folded(tuple(places)) for places in by_text.values()]


def unfolded(found: Sequence[Folded]) -> list[Verified]:
    return [place for one in found for place in one.places]
