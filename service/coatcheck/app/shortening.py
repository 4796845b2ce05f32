"""The stages that shorten text and sum it up: which models the settings give them, each behind its worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from coatcheck.domain.ports import Compressor, EntailmentGate, Router, Summariser
from coatcheck.models import stage_models
from coatcheck.models.stage_workers import RouterWorker
from coatcheck.ops.progress import ProgressBoard
from coatcheck.settings import Settings


@dataclass(frozen=True, slots=True)
class Shortening:
    """The models that shorten text and sum it up. What is absent keeps, and a run says so."""

    router: Router | None = None
    compressor: Compressor | None = None
    entailment: EntailmentGate | None = None
    summariser: Summariser | None = None


class StageWorker(Protocol):
    """A model behind its worker, as far as a start and a stop see it."""

    async def warm(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    ports: Shortening
    workers: tuple[StageWorker, ...]
    reasons: dict[str, str]
    """Why a stage has no model."""


def open_shortening(settings: Settings, board: ProgressBoard, worked: Callable[[UUID, float], None]) -> Opened:
    """Nothing is loaded yet, and no hub is asked. ``worked`` is told for whom a model worked how long. Raises RefusedToStart."""
    router = stage_models.build_router(settings.router)
    routing = RouterWorker(router.model, board, worked) if router.model is not None else None
    workers = [worker for worker in (routing,) if worker is not None]
    return Opened(Shortening(routing), tuple(workers), {"router": router.reason})
