"""The models of this process, each loaded when it is first used, behind the lanes that keep queries ahead of ingest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from coatcheck.app.shortening import Shortening, open_shortening
from coatcheck.models import build_embedder, build_reranker
from coatcheck.models.lanes import EmbeddingLanes
from coatcheck.models.registry import SWITCHED_OFF
from coatcheck.models.reranking import RerankWorker
from coatcheck.ops.meter import Meter
from coatcheck.ops.progress import ProgressBoard
from coatcheck.settings import Settings


@dataclass(frozen=True, slots=True)
class Models:
    """None where there is no model: every stage that would use it says so."""

    lanes: EmbeddingLanes | None
    reranker: RerankWorker | None
    absent: dict[str, str]
    """Why there is no model although the settings ask for one, by stage."""
    embedding: Meter = field(default_factory=Meter)
    """Seconds of the models' work by tenant, until they are charged."""
    shortening: Shortening = field(default_factory=Shortening)

    @property
    def embedder_revision(self) -> str:
        return self.lanes.revision if self.lanes is not None else "none"

    @property
    def dimensions(self) -> int:
        return self.lanes.dimensions if self.lanes is not None else 0

    async def warm(self) -> None:
        """Loads what the first requests would wait for. Raises nothing."""
        warming = [worker.warm() for worker in self.shortening.workers]
        if self.reranker is not None:
            warming.append(self.reranker.warm())
        await asyncio.gather(*warming)

    async def close(self, limit_s: float) -> None:
        """Takes nothing more on, and waits so long for the batches in work; what stands still then is left behind."""
        closing = [worker.close(limit_s) for worker in self.shortening.workers]
        if self.lanes is not None:
            closing.append(self.lanes.close(limit_s))
        if self.reranker is not None:
            closing.append(self.reranker.close(limit_s))
        await asyncio.gather(*closing)


def open_models(settings: Settings, board: ProgressBoard) -> Models:
    """Finds the models that the settings name; blocks while a hub is asked.

    Raises RefusedToStart for an embedder or a reranker that is absent, and for what is no name. A stage that shortens text goes
    without its model: text is kept, and the service says that it is degraded.
    """
    embedder, reranker = build_embedder(settings.embedder), build_reranker(settings.reranker)
    meter = Meter()
    shortening, shortening_reasons = open_shortening(settings, board, meter.add)
    lanes = None
    if embedder.model is not None:
        lanes = EmbeddingLanes(embedder.model, board, batch=settings.embed_batch, worked=meter.add)
    reasons = {"embedder": embedder.reason, "reranker": reranker.reason, **shortening_reasons}
    absent = {stage: reason for stage, reason in reasons.items() if reason and reason != SWITCHED_OFF}
    reranking = RerankWorker(reranker.model, board, worked=meter.add) if reranker.model is not None else None
    return Models(lanes, reranking, absent, meter, shortening)
