"""What the pure pipeline returns: everything a run will store, decided before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from coatcheck.domain.entries import Entry
from coatcheck.domain.messages import WindowFormat
from coatcheck.domain.runs import Handoff, RunCounts
from coatcheck.domain.segments import Blob, Reduction, Segment


@dataclass(frozen=True, slots=True)
class PlanWarning:
    """Something the caller should know that is no error: a stage that was absent, text indexed lexically only."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The decided compaction. ``segments`` and ``blobs`` are unique by hash; ``entries`` are in the window's order."""

    window_format: WindowFormat
    entries: tuple[Entry, ...]
    segments: tuple[Segment, ...]
    reductions: tuple[Reduction, ...]
    blobs: tuple[Blob, ...]
    handoff: Handoff
    counts: RunCounts
    earlier_handoffs: tuple[UUID, ...]
    """The manifests whose handoffs stood in the window, in its order."""
    warnings: tuple[PlanWarning, ...]
    revisions: dict[str, str]
