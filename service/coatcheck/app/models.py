"""The models of this process, each loaded when it is first used, behind the lanes that keep queries ahead of ingest."""

from __future__ import annotations

from dataclasses import dataclass

from coatcheck.domain.ports import EmbeddingLanes, Reranker
from coatcheck.ops.progress import ProgressBoard
from coatcheck.settings import Settings


@dataclass(frozen=True, slots=True)
class Models:
    """None where there is no model: every stage that would use it says so."""

    lanes: EmbeddingLanes | None
    reranker: Reranker | None

    @property
    def embedder_revision(self) -> str:
        return self.lanes.revision if self.lanes is not None else "none"

    @property
    def dimensions(self) -> int:
        return self.lanes.dimensions if self.lanes is not None else 1
