"""The stages that shorten text and sum it up: which models the settings give them, each behind its worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn
from uuid import UUID

from coatcheck.compaction.stages import NOT_INSTALLED
from coatcheck.domain.errors import StageUnavailable
from coatcheck.domain.ports import Compressor, EntailmentGate, Router, Summariser
from coatcheck.models import Built, stage_models
from coatcheck.models.registry import SWITCHED_OFF
from coatcheck.models.stage_models import Endpoint
from coatcheck.models.stage_workers import CompressorWorker, EntailmentWorker, RouterWorker, StageWorker, SummariserWorker
from coatcheck.ops.progress import ProgressBoard
from coatcheck.outbound.client import Outbound
from coatcheck.outbound.guard import Allowance
from coatcheck.settings import Settings


class Missing:
    """A stage that the settings ask for and that has no model here: to ask it is to be told so, and a run warns of it.

    Why is the operator's to know (``/readyz``, ``doctor``), and may name places on this machine.
    """

    revision = "none"

    def __call__(self, *_: object) -> NoReturn:
        raise StageUnavailable(NOT_INSTALLED)

    route = compress = judge = summarise = __call__


@dataclass(frozen=True, slots=True)
class Shortening:
    """The models that shorten text and sum it up. None is a stage that is switched off: it keeps, and nothing is amiss."""

    router: Router | None = None
    compressor: Compressor | None = None
    entailment: EntailmentGate | None = None
    summariser: Summariser | None = None

    @property
    def workers(self) -> tuple[StageWorker[Any, Any, Any], ...]:
        """Those of the stages that have a model behind a worker."""
        ports: tuple[object, ...] = (self.router, self.compressor, self.entailment, self.summariser)
        return tuple(port for port in ports if isinstance(port, StageWorker))


def open_shortening(
    settings: Settings, board: ProgressBoard, worked: Callable[[UUID, float], None]
) -> tuple[Shortening, dict[str, str]]:
    """The stages, and why one has no model. Nothing is loaded yet, and no hub is asked. Raises RefusedToStart.

    ``worked`` is told for whom a model worked how long.
    """
    built = {stage: build() for stage, build in builders(settings).items()}
    ports = {
        stage: _WORKERS[stage](found.model, board, worked) if found.model is not None else Missing()
        for stage, found in built.items()
        if found.reason != SWITCHED_OFF
    }
    return Shortening(**ports), {stage: found.reason for stage, found in built.items()}


def builders(settings: Settings) -> dict[str, Callable[[], Built[Any]]]:
    """For each stage what makes the model that the settings name, not loaded. What is called raises RefusedToStart."""
    labels = [label.strip() for label in settings.entailment_labels.split(",")] if settings.entailment_labels else None
    allowance = Allowance(settings.outbound_allow_private, settings.outbound_allow_loopback, settings.outbound_allow_private_http)
    buckets = [int(length) for length in settings.router_buckets.split(",")] if settings.router_buckets else None
    endpoint = Endpoint(settings.summariser_model, settings.summariser_api_key, Outbound(allowance))
    return {
        "router": lambda: stage_models.build_router(settings.router, buckets=buckets),
        "compressor": lambda: stage_models.build_compressor(settings.compressor),
        "entailment": lambda: stage_models.build_entailment(settings.entailment, labels),
        "summariser": lambda: stage_models.build_summariser(settings.summariser, endpoint),
    }


_WORKERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"router": RouterWorker, "compressor": CompressorWorker, "entailment": EntailmentWorker, "summariser": SummariserWorker}
)
