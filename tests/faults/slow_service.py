"""The command with an embedder whose every batch takes longer than anybody waits, as a large model's on a busy machine does."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from coatcheck.app import models
from coatcheck.cli import main
from coatcheck.domain.ports import Embedder
from coatcheck.models.hashing import HashingEmbedder
from coatcheck.models.registry import Built

BATCH_S = 25.0
BEGUN = "batches"
"""A file beside the data directory: one byte for each batch that was begun."""


class SlowEmbedder(HashingEmbedder):
    """Embedder port. As native code does, it neither hears of a cancellation nor ends before its batch does."""

    def __init__(self, begun: Path) -> None:
        self._begun = begun

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        with self._begun.open("ab") as file:
            file.write(b".")
        time.sleep(BATCH_S)
        return super().embed_passages(texts)


def serve() -> None:
    """``coatcheck`` with it."""
    begun = Path(os.environ["COATCHECK_DATA_DIR"]).with_name(BEGUN)

    def built(name: str) -> Built[Embedder]:
        return Built(SlowEmbedder(begun))

    with mock.patch.object(models, "build_embedder", built):
        main()
