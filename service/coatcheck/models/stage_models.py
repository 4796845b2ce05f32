"""Which model answers to the name that a setting has for one of the stages that shorten text, or why none does.

Nothing is loaded here and no hub is asked: a model that is not on this machine is none, with the reason. What is no name, or a
place where nothing may be asked, raises RefusedToStart.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from pydantic import SecretStr

from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.domain.ports import Compressor, EntailmentGate, Router, Summariser
from coatcheck.models import checkpoints
from coatcheck.models.gliclass_loading import MAX_TOKENS
from coatcheck.models.registry import NONE, SWITCHED_OFF, Built, models_dir
from coatcheck.models.stage_workers import LazyModel
from coatcheck.outbound.client import Outbound

M = TypeVar("M")

LIBRARIES: Mapping[str, str] = MappingProxyType(
    {"router": "gliclass", "compressor": "transformers", "entailment": "transformers", "summariser": "transformers"}
)
"""What reads each stage's checkpoints, of coatcheck[models]."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What asking a chat endpoint needs besides its address."""

    model: str | None
    key: SecretStr | None
    outbound: Outbound


def build_router(name: str, *, buckets: Sequence[int] | None = None, cache_dir: Path | None = None) -> Built[LazyModel[Router]]:
    """A quantised checkpoint is the FP8 router's, any other one the CPU's. ``buckets``: lengths for which a GPU captures graphs."""
    if buckets and max(buckets) > MAX_TOKENS:
        raise RefusedToStart(f"COATCHECK_ROUTER_BUCKETS: {max(buckets):,} tokens are above the {MAX_TOKENS:,} that a router reads.")

    def load(folder: Path, revision: str) -> Router:
        from coatcheck.gpu.fp8.loading import is_quantised

        if is_quantised(folder):
            from coatcheck.models.fp8_router import fp8_router

            return fp8_router(folder, revision=revision, buckets=buckets)
        from coatcheck.models.gliclass import GliclassRouter

        return GliclassRouter(folder, revision=revision)

    return _lazy("router", name, load, cache_dir)


def build_compressor(name: str, *, cache_dir: Path | None = None) -> Built[LazyModel[Compressor]]:
    def load(folder: Path, revision: str) -> Compressor:
        from coatcheck.models.llmlingua import LlmlinguaCompressor

        return LlmlinguaCompressor(folder, revision=revision)

    return _lazy("compressor", name, load, cache_dir)


def build_entailment(
    name: str, labels: Sequence[str] | None = None, *, cache_dir: Path | None = None
) -> Built[LazyModel[EntailmentGate]]:
    """``labels`` name the model's outputs in their order, where its checkpoint does not."""

    def load(folder: Path, revision: str) -> EntailmentGate:
        from coatcheck.models.entailment import CrossEncoderEntailment

        gate = CrossEncoderEntailment(folder, labels=labels, revision=revision)
        gate.load()
        return gate

    return _lazy("entailment", name, load, cache_dir)


def build_summariser(name: str, endpoint: Endpoint, *, cache_dir: Path | None = None) -> Built[LazyModel[Summariser]]:
    """A URL is that of an OpenAI-compatible endpoint, which is asked for the endpoint's model."""

    def load(folder: Path, revision: str) -> Summariser:
        from coatcheck.models.seq2seq import Seq2SeqSummariser

        summariser = Seq2SeqSummariser(folder, revision=revision)
        summariser.load()
        return summariser

    if is_url(name):
        return Built(_of_endpoint(name, endpoint))
    return _lazy("summariser", name, load, cache_dir)


def is_url(name: str) -> bool:
    return name.startswith(("https://", "http://"))


def _of_endpoint(url: str, endpoint: Endpoint) -> LazyModel[Summariser]:
    from coatcheck.models.endpoint import EndpointSummariser

    if not endpoint.model:
        raise RefusedToStart("COATCHECK_SUMMARISER is an endpoint: COATCHECK_SUMMARISER_MODEL says which of its models is asked.")
    summariser = EndpointSummariser(url, endpoint.model, endpoint.key, endpoint.outbound)
    return LazyModel(summariser.revision, lambda: summariser, is_remote=True)


def _lazy(stage: str, name: str, load: Callable[[Path, str], M], cache_dir: Path | None) -> Built[LazyModel[M]]:
    if name == NONE:
        return Built(None, SWITCHED_OFF)
    named = checkpoints.parse(f"COATCHECK_{stage.upper()}", name)
    if importlib.util.find_spec(LIBRARIES[stage]) is None:
        return Built(None, "coatcheck[models] is not installed")
    try:
        found = checkpoints.locate(named, cache_dir or models_dir())
        revision = found.revision
    except StageUnavailable as error:
        return Built(None, error.detail)
    return Built(LazyModel(revision, lambda: load(found.folder, revision)))
