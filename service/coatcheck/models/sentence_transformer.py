"""Embedder and reranker by sentence-transformers, from a local folder: for models that fastembed does not know.

One text at a time, as with fastembed: what is padded beside a text would move its vector.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coatcheck.domain.errors import StageUnavailable
from coatcheck.models import torch_runtime
from coatcheck.models.checkpoints import Checkpoint, require_ordinary
from coatcheck.models.lazily import Lazily
from coatcheck.models.native import native

_READ: dict[str, Any] = {"device": "cpu", "local_files_only": True, "trust_remote_code": False}
_WEIGHTS: dict[str, Any] = {"use_safetensors": True, "dtype": "float32"}
_ENGLISH = ("en", "eng", "english")


class SentenceTransformerEmbedder:
    """Embedder port. Loads when it is made: its dimensions decide the index's generation. Raises StageUnavailable."""

    threads = 1
    """Torch spreads one text over its own."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        from sentence_transformers import SentenceTransformer

        self.revision = checkpoint.revision
        self.weights: Path | None = checkpoint.weights[0]
        require_ordinary(checkpoint.folder)
        with native("embed"), torch_runtime.loading():
            self._model: Any = SentenceTransformer(str(checkpoint.folder), model_kwargs=_WEIGHTS, **_READ)
            self._tokenizer = self._model.tokenizer
            if not self._tokenizer.is_fast:
                raise StageUnavailable("The embedder's tokenizer cannot say where its tokens stand.")
            dimensions = self._model.get_embedding_dimension()
            if not dimensions or not self._model.max_seq_length:
                raise StageUnavailable("The embedder does not say how much it reads, or how long its vectors are.")
            self.dimensions = int(dimensions)
            special = self._tokenizer.num_special_tokens_to_add(pair=False)
            self.input_tokens = int(self._model.max_seq_length) - special - self._prompt_tokens()

    def token_offsets(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        with native("embed"):
            read = self._tokenizer(
                list(texts), add_special_tokens=False, return_offsets_mapping=True, truncation=False, padding=False, verbose=False
            )
            return [[(int(start), int(end)) for start, end in offsets] for offsets in read["offset_mapping"]]

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        with native("embed"):
            return [self._vector(self._model.encode_document, text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        with native("embed"):
            return self._vector(self._model.encode_query, text)

    def _vector(self, encode: Any, text: str) -> list[float]:
        """Of length one, as the index takes it. ``encode`` puts before the text what its card says."""
        found: list[float] = encode(text, normalize_embeddings=True, show_progress_bar=False).tolist()
        return found

    def _prompt_tokens(self) -> int:
        prompts = self._model.prompts or {}
        longest = max((prompt for prompt in prompts.values() if prompt), key=len, default="")
        return len(self._tokenizer(longest, add_special_tokens=False)["input_ids"]) if longest else 0


class CrossEncoderReranker:
    """Reranker port. Loaded by the first score. What is longer than the model reads is cut off."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.revision = checkpoint.revision
        self.weights: Path | None = checkpoint.weights[0]
        self.english_only = checkpoint.languages == ("en",)
        self._folder = checkpoint.folder
        self._lock = threading.Lock()
        self._model = Lazily("rerank", self._load)

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        with native("rerank"):
            model = self._loaded()
            return [self._score(model, query, passage) for passage in passages]

    def _score(self, model: Any, query: str, passage: str) -> float:
        (found,) = model.predict([(query, passage)], show_progress_bar=False)
        if getattr(found, "ndim", 0):
            raise StageUnavailable("The reranking model gives more than one score for a passage.")
        return float(found)

    def _loaded(self) -> Any:
        with self._lock:
            return self._model()

    def _load(self) -> Any:
        import torch
        from sentence_transformers import CrossEncoder

        require_ordinary(self._folder)
        with torch_runtime.loading():
            return CrossEncoder(str(self._folder), model_kwargs=_WEIGHTS, activation_fn=torch.nn.Identity(), **_READ)
