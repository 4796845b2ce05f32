"""What an embedder was given: how much of a window is embedded again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from coatcheck.models.hashing import HashingEmbedder


def note_embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the hashing embedder is given from now on, in their order."""
    texts: list[str] = []
    embed = HashingEmbedder.embed_passages

    def noted(self: HashingEmbedder, given: Sequence[str]) -> list[list[float]]:
        texts.extend(given)
        return embed(self, given)

    monkeypatch.setattr(HashingEmbedder, "embed_passages", noted)
    return texts
