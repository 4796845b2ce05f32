"""The models of this process, each loaded when it is first used, behind the lanes that keep queries ahead of ingest."""

from __future__ import annotations

from dataclasses import dataclass, field

from coatcheck.domain.ports import Compressor, EntailmentGate, Router, Summariser
from coatcheck.models import build_embedder, build_reranker
from coatcheck.models.lanes import EmbeddingLanes
from coatcheck.models.registry import SWITCHED_OFF
from coatcheck.models.reranking import RerankWorker
from coatcheck.ops.meter import Meter
from coatcheck.ops.progress import ProgressBoard
from coatcheck.settings import Settings


@dataclass(frozen=True, slots=True)
class Shortening:
    """The models that shorten text and sum it up. No release has them yet: what is absent keeps, and a run says so."""

    router: Router | None = None
    compressor: Compressor | None = None
    entailment: EntailmentGate | None = None
    summariser: Summariser | None = None


@dataclass(frozen=True, slots=True)
class Models:
    """None where there is no model: every stage that would use it says so."""

    lanes: EmbeddingLanes | None
    reranker: RerankWorker | None
    absent: dict[str, str]
    """Why there is no model although the settings ask for one, by stage."""
    embedding: Meter = field(default_factory=Meter)
    """Seconds of the embedder's and the reranker's work by tenant, until they are charged."""
    shortening: Shortening = field(default_factory=Shortening)

    @property
    def embedder_revision(self) -> str:
        return self.lanes.revision if self.lanes is not None else "none"

    @property
    def dimensions(self) -> int:
        return self.lanes.dimensions if self.lanes is not None else 0

    async def close(self) -> None:
        if self.lanes is not None:
            await self.lanes.close()
        if self.reranker is not None:
            await self.reranker.close()


def open_models(settings: Settings, board: ProgressBoard) -> Models:
    """Finds the models that the settings name; blocks while a hub is asked. Raises RefusedToStart for an absent one."""
    embedder, reranker = build_embedder(settings.embedder), build_reranker(settings.reranker)
    meter = Meter()
    lanes = None
    if embedder.model is not None:
        lanes = EmbeddingLanes(embedder.model, board, batch=settings.embed_batch, worked=meter.add)
    reasons = {"embedder": embedder.reason, "reranker": reranker.reason}
    absent = {stage: reason for stage, reason in reasons.items() if reason and reason != SWITCHED_OFF}
    return Models(
        lanes, RerankWorker(reranker.model, board, worked=meter.add) if reranker.model is not None else None, absent, meter
    )
