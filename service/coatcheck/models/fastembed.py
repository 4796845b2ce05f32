"""Embeddings by fastembed on ONNX Runtime: bge-small from packaged weights, or any model it knows by name.

The library is imported, and the model loaded, when the first text is embedded: a start does not wait for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coatcheck.domain.errors import StageUnavailable
from coatcheck.models.native import native
from coatcheck.models.one_by_one import OneByOne
from coatcheck.models.packaged import BGE_SMALL, file_sha256

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from tokenizers import Tokenizer

BGE_PREFIX = "Represent this sentence for searching relevant passages: "
"""What the model card of bge v1.5 puts before a short query; passages have none."""
SPECIAL_TOKENS = 2
THREADS = 2


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What a model was trained to see before a query and before a passage."""

    query: str = ""
    passage: str = ""


# From the model cards; fastembed leaves these to the caller.
_PREFIXES = {
    "BAAI/bge-small-en": Prefixes(BGE_PREFIX),
    "BAAI/bge-base-en": Prefixes(BGE_PREFIX),
    "BAAI/bge-large-en": Prefixes(BGE_PREFIX),
    "mixedbread-ai/mxbai-embed-large": Prefixes(BGE_PREFIX),
    "snowflake/snowflake-arctic-embed": Prefixes(BGE_PREFIX),
    "intfloat/multilingual-e5": Prefixes("query: ", "passage: "),
}


@dataclass(slots=True)
class _Loaded:
    embedding: TextEmbedding
    tokenizer: Tokenizer
    """The model's own, without truncation or padding: for spans alone."""


class FastembedEmbedder:
    """Embedder port. The same text gives the same vector whatever is embedded beside it. Its methods raise StageUnavailable."""

    def __init__(
        self,
        load: Callable[[], TextEmbedding],
        *,
        revision: str,
        weights: Path | None,
        dimensions: int,
        max_tokens: int,
        prefixes: Prefixes,
        threads: int = THREADS,
    ) -> None:
        """``load`` is called once, at first use; ``max_tokens`` is the longest input, special tokens included."""
        self.revision = revision
        self.weights = weights
        self.dimensions = dimensions
        self.threads = threads
        self.input_tokens = max_tokens - SPECIAL_TOKENS - len(prefixes.passage)
        self._load = load
        self._prefixes = prefixes
        self._texts = OneByOne(threads, "embed")
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    def token_offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        with native("embed"):
            encodings = self._model().tokenizer.encode_batch(list(texts), add_special_tokens=False)
            return [encoding.offsets for encoding in encodings]

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        with native("embed"):
            embedding = self._model().embedding
            return self._texts.map(lambda text: _vector(embedding.passage_embed, self._prefixes.passage + text), texts)

    def embed_query(self, text: str) -> list[float]:
        with native("embed"):
            return _vector(self._model().embedding.query_embed, self._prefixes.query + text)

    def _model(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._load)
            return self._loaded


def packaged_embedder(folder: Path, threads: int = THREADS) -> FastembedEmbedder:
    """bge-small-en-v1.5 from the verified folder of the wheel."""

    def load() -> TextEmbedding:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType

        _silence_library()
        name = f"coatcheck/{BGE_SMALL.name}"
        if all(model["model"] != name for model in TextEmbedding.list_supported_models()):
            TextEmbedding.add_custom_model(
                name,
                pooling=PoolingType.CLS,
                normalization=True,
                sources=ModelSource(url="file://packaged"),
                dim=384,
                model_file="model.onnx",
            )
        return TextEmbedding(name, specific_model_path=str(folder), threads=1)

    return FastembedEmbedder(
        load,
        revision=BGE_SMALL.revision,
        weights=folder / "model.onnx",
        dimensions=384,
        max_tokens=512,
        prefixes=Prefixes(BGE_PREFIX),
        threads=threads,
    )


def hub_embedder(name: str, cache_dir: Path, *, local_files_only: bool, threads: int = THREADS) -> FastembedEmbedder:
    """A model that fastembed knows by name, from its cache or, unless ``local_files_only``, from the hub: loaded at once.

    Its revision holds the hash of its weights. Raises StageUnavailable when the name is unknown or no file can be had.
    """
    from fastembed import TextEmbedding

    _silence_library()
    try:
        embedding = TextEmbedding(name, cache_dir=str(cache_dir), threads=1, local_files_only=local_files_only)
    except (ValueError, OSError) as error:
        raise StageUnavailable(f"The embedding model {name} could not be loaded.") from error
    inner: Any = embedding.model
    weights = Path(inner._model_dir) / inner.model_description.model_file
    return FastembedEmbedder(
        lambda: embedding,
        revision=f"{name}@{file_sha256(weights)[:12]}",
        weights=weights,
        dimensions=embedding.embedding_size,
        max_tokens=inner.tokenizer.truncation["max_length"],
        prefixes=next((prefixes for start, prefixes in _PREFIXES.items() if name.startswith(start)), Prefixes()),
        threads=threads,
    )


def _load(load: Callable[[], TextEmbedding]) -> _Loaded:
    from tokenizers import Tokenizer

    embedding = load()
    inner: Any = embedding.model
    tokenizer = Tokenizer.from_str(inner.tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return _Loaded(embedding, tokenizer)


def _vector(embed: Callable[[list[str]], Any], text: str) -> list[float]:
    vector: list[float] = next(iter(embed([text]))).tolist()
    return vector


def _silence_library() -> None:
    """The library logs to standard error by a logger of its own; what matters of it comes as an error."""
    from loguru import logger

    logger.disable("fastembed")
