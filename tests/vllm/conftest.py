"""The models that are served, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vllm.environment import ask


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Their folders by name: ``llama`` with random weights, ``hybrid`` without any."""
    folder = tmp_path_factory.mktemp("models")
    written: dict[str, str] = ask("tiny_models.py", str(folder))
    return {name: Path(path) for name, path in written.items()}
