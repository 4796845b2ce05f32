"""Embeddings by fastembed on ONNX Runtime: bge-small from packaged weights, or any model it knows by name.

The library is imported, and the model loaded, when the first text is embedded: a start does not wait for them.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coatcheck.domain.errors import StageUnavailable
from coatcheck.models.lazily import loading
from coatcheck.models.native import native
from coatcheck.models.one_by_one import OneByOne
from coatcheck.models.packaged import BGE_SMALL, file_sha256
from coatcheck.models.prefixes import BGE_PREFIX, Prefixes, prefixes_of
from coatcheck.models.unlisted import make_known

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from tokenizers import Tokenizer

SPECIAL_TOKENS = 2
THREADS = 2
UNIT = 1e-3
"""How far from one the length of a vector may be."""


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
        special_tokens: int = SPECIAL_TOKENS,
        threads: int = THREADS,
    ) -> None:
        """``load`` is called once, at first use; ``max_tokens`` is the longest input, ``special_tokens`` included."""
        self.revision = revision
        self.weights = weights
        self.dimensions = dimensions
        self.threads = threads
        self.input_tokens = max_tokens - special_tokens - len(prefixes.passage)
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
                with loading():
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
    make_known()
    try:
        embedding = TextEmbedding(name, cache_dir=str(cache_dir), threads=1, local_files_only=local_files_only)
        inner: Any = embedding.model
        description = inner.model_description
        files = [Path(inner._model_dir) / file for file in (description.model_file, *description.additional_files)]
        digest = _digest(files)
    except Exception as error:  # of the hub, the files, the runtime: their kinds are many
        raise StageUnavailable(f"The embedding model {name} could not be loaded.") from error
    return FastembedEmbedder(
        lambda: embedding,
        revision=f"{name}@{digest[:12]}",
        weights=files[-1],
        dimensions=embedding.embedding_size,
        max_tokens=inner.tokenizer.truncation["max_length"],
        prefixes=prefixes_of(name),
        special_tokens=_special_tokens(inner.tokenizer),
        threads=threads,
    )


def _digest(files: Sequence[Path]) -> str:
    """Of all that a model is made of: a large one's weights lie beside its graph."""
    digests = [file_sha256(file) for file in files]
    return digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()


def _special_tokens(tokenizer: Tokenizer) -> int:
    """How many tokens come to a text's own, at most. SentencePiece begins with a mark of a word's beginning, also inside a word."""
    from tokenizers.models import Unigram

    return int(tokenizer.num_special_tokens_to_add(False)) + isinstance(tokenizer.model, Unigram)


def _load(load: Callable[[], TextEmbedding]) -> _Loaded:
    from tokenizers import Tokenizer

    embedding = load()
    inner: Any = embedding.model
    tokenizer = Tokenizer.from_str(inner.tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return _Loaded(embedding, tokenizer)


def _vector(embed: Callable[[list[str]], Any], text: str) -> list[float]:
    """Of length one: some models of the library are pooled and left as they are."""
    vector: list[float] = next(iter(embed([text]))).tolist()
    length = math.hypot(*vector)
    return vector if abs(length - 1) <= UNIT or length == 0 else [value / length for value in vector]


def _silence_library() -> None:
    """The library logs to standard error by a logger of its own; what matters of it comes as an error."""
    from loguru import logger

    logger.disable("fastembed")
