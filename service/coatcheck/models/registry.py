"""Which model answers to a name of the settings, or why none does."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import platformdirs

from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.domain.ports import Embedder, Reranker
from coatcheck.models import checkpoints
from coatcheck.models.checkpoints import Checkpoint
from coatcheck.models.packaged import BGE_SMALL, MS_MARCO, locate

AUTO = "auto"
NONE = "none"
HASHING = "hashing"
SWITCHED_OFF = "switched off"
DEFAULT_EMBEDDER = "BAAI/bge-small-en-v1.5"
DEFAULT_RERANKER = "Xenova/ms-marco-MiniLM-L-12-v2"
AUTO_HUB_LIMIT_S = 20.0
"""How long ``auto`` waits for a hub: a start without a network does not hang on it."""
NAMED_HUB_LIMIT_S = 600.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Built(Generic[T]):
    """A model, or the reason why there is none."""

    model: T | None
    reason: str = ""


def build_embedder(name: str, *, cache_dir: Path | None = None, hub_limit_s: float | None = None) -> Built[Embedder]:
    """The embedder of this name. Blocks while a hub is asked, never longer than the limit.

    ``auto``: bge-small from packaged weights, else from the cache or the hub, else none with its reason. ``none``. ``hashing``.
    A folder, or ``NAME@COMMIT`` of a hub, is a model for sentence-transformers. Anything else is a name as fastembed has it.

    Raises RefusedToStart when a named model cannot be had, or packaged weights are not the reviewed ones: going on without it would
    put another generation into the index.
    """
    if name == NONE:
        return Built(None, SWITCHED_OFF)
    if name == HASHING:
        from coatcheck.models.hashing import HashingEmbedder

        return Built(HashingEmbedder())
    if name in (AUTO, DEFAULT_EMBEDDER) and (folder := locate(BGE_SMALL)) is not None:
        from coatcheck.models.fastembed import packaged_embedder

        return Built(packaged_embedder(folder))
    if checkpoints.is_pinned(name):
        return Built(_checkpoint("embedder", name, cache_dir, _torch_embedder))
    wanted = DEFAULT_EMBEDDER if name == AUTO else name
    return _from_hub(lambda cached: _hub_embedder(wanted, cache_dir, cached), name, hub_limit_s)


def build_reranker(name: str, *, cache_dir: Path | None = None, hub_limit_s: float | None = None) -> Built[Reranker]:
    """The reranker of this name, by the same rules; there is no ``hashing`` one."""
    if name == NONE:
        return Built(None, SWITCHED_OFF)
    if name in (AUTO, DEFAULT_RERANKER) and (folder := locate(MS_MARCO)) is not None:
        from coatcheck.models.reranker import packaged_reranker

        return Built(packaged_reranker(folder))
    if checkpoints.is_pinned(name):
        return Built(_checkpoint("reranker", name, cache_dir, _torch_reranker))
    wanted = DEFAULT_RERANKER if name == AUTO else name
    return _from_hub(lambda cached: _hub_reranker(wanted, cache_dir, cached), name, hub_limit_s)


def cached(stage: str, name: str, cache_dir: Path | None = None) -> Embedder | Reranker:
    """A hub's model from the cache alone. Raises StageUnavailable."""
    return _hub_embedder(name, cache_dir, True) if stage == "embedder" else _hub_reranker(name, cache_dir, True)


def _hub_embedder(name: str, cache_dir: Path | None, cached: bool) -> Embedder:
    from coatcheck.models.fastembed import hub_embedder

    return hub_embedder(name, cache_dir or models_dir(), local_files_only=cached)


def _hub_reranker(name: str, cache_dir: Path | None, cached: bool) -> Reranker:
    from coatcheck.models.reranker import hub_reranker

    return hub_reranker(name, cache_dir or models_dir(), local_files_only=cached)


def _checkpoint(stage: str, name: str, cache_dir: Path | None, load: Callable[[Checkpoint], T]) -> T:
    """A model that only sentence-transformers reads. Raises RefusedToStart."""
    named = checkpoints.parse(f"COATCHECK_{stage.upper()}", name)
    if importlib.util.find_spec("sentence_transformers") is None:
        raise RefusedToStart(f"COATCHECK_{stage.upper()}={name} needs coatcheck[models], which is not installed.")
    try:
        return load(checkpoints.locate(named, cache_dir or models_dir()))
    except StageUnavailable as error:
        raise RefusedToStart(f"COATCHECK_{stage.upper()}: {error.detail}") from error


def _torch_embedder(checkpoint: Checkpoint) -> Embedder:
    from coatcheck.models.sentence_transformer import SentenceTransformerEmbedder

    return SentenceTransformerEmbedder(checkpoint)


def _torch_reranker(checkpoint: Checkpoint) -> Reranker:
    from coatcheck.models.sentence_transformer import CrossEncoderReranker

    return CrossEncoderReranker(checkpoint)


def _from_hub(build: Callable[[bool], T], name: str, limit_s: float | None) -> Built[T]:
    """From the cache if it is there, else from the hub within the limit."""
    is_auto = name == AUTO
    try:
        return Built(build(True))
    except StageUnavailable:
        pass
    try:
        return Built(_within(lambda: build(False), limit_s or (AUTO_HUB_LIMIT_S if is_auto else NAMED_HUB_LIMIT_S)))
    except StageUnavailable as error:
        if is_auto:
            return Built(None, "neither packaged weights nor a hub that answers")
        raise RefusedToStart(f"The model {name} is neither in the cache nor to be had from the hub.") from error


def _within(work: Callable[[], T], limit_s: float) -> T:
    """The result, or StageUnavailable after the limit. The library retries for as long as it likes: its thread is left behind."""
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # handed to the caller below
            failures.append(error)

    thread = threading.Thread(target=run, name="hub", daemon=True)
    thread.start()
    thread.join(limit_s)
    if results:
        return results[0]
    if failures:
        raise failures[0]
    raise StageUnavailable("The hub did not answer in time.")


def models_dir() -> Path:
    """Where what a hub gave is kept: the user's cache directory."""
    return Path(platformdirs.user_cache_dir("coatcheck")) / "models"
