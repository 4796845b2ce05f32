"""Reranking by a cross-encoder that reads query and passage together: ms-marco-MiniLM-L-12-v2 from packaged weights."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coatcheck.domain.errors import StageUnavailable
from coatcheck.models.lazily import Lazily
from coatcheck.models.native import native
from coatcheck.models.one_by_one import OneByOne
from coatcheck.models.packaged import MS_MARCO, file_sha256

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder

THREADS = 2
_ENGLISH_ONLY = {
    "Xenova/ms-marco-MiniLM-L-6-v2",
    "Xenova/ms-marco-MiniLM-L-12-v2",
    "jinaai/jina-reranker-v1-tiny-en",
    "jinaai/jina-reranker-v1-turbo-en",
}
"""By their cards."""


class FastembedReranker:
    """Reranker port. Scores are logits: comparable within one query. What is longer than the model reads is cut off."""

    def __init__(
        self,
        load: Callable[[], TextCrossEncoder],
        *,
        revision: str,
        weights: Path | None,
        english_only: bool,
        threads: int = THREADS,
    ) -> None:
        """``load`` is called once, at first use."""
        self.revision = revision
        self.weights = weights
        self.english_only = english_only
        self._load = load
        self._pairs = OneByOne(threads, "rerank")
        self._lock = threading.Lock()
        self._encoder = Lazily("rerank", load)

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """Raises StageUnavailable."""
        with native("rerank"):
            encoder = self._model()
            return self._pairs.map(lambda passage: float(next(iter(encoder.rerank(query, [passage])))), passages)

    def _model(self) -> TextCrossEncoder:
        with self._lock:
            return self._encoder()


def packaged_reranker(folder: Path, threads: int = THREADS) -> FastembedReranker:
    """The cross-encoder from the verified folder of the wheel."""

    def load() -> TextCrossEncoder:
        from fastembed.common.model_description import ModelSource
        from fastembed.rerank.cross_encoder import TextCrossEncoder

        name = f"coatcheck/{MS_MARCO.name}"
        if all(model["model"] != name for model in TextCrossEncoder.list_supported_models()):
            TextCrossEncoder.add_custom_model(name, sources=ModelSource(url="file://packaged"), model_file="model.onnx")
        return TextCrossEncoder(name, specific_model_path=str(folder), threads=1)

    return FastembedReranker(load, revision=MS_MARCO.revision, weights=folder / "model.onnx", english_only=True, threads=threads)


def hub_reranker(name: str, cache_dir: Path, *, local_files_only: bool, threads: int = THREADS) -> FastembedReranker:
    """A cross-encoder that fastembed knows by name, loaded at once. Raises StageUnavailable when it cannot be had."""
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    try:
        encoder = TextCrossEncoder(name, cache_dir=str(cache_dir), threads=1, local_files_only=local_files_only)
        inner: Any = encoder.model
        weights = Path(inner._model_dir) / inner.model_description.model_file
        revision = f"{name}@{file_sha256(weights)[:12]}"
    except Exception as error:  # of the hub, the files, the runtime: their kinds are many
        raise StageUnavailable(f"The reranking model {name} could not be loaded.") from error
    return FastembedReranker(
        lambda: encoder, revision=revision, weights=weights, english_only=name in _ENGLISH_ONLY, threads=threads
    )
