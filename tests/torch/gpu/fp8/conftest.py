"""Checkpoints that several tests read and none changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from coatcheck.gpu.fp8.quantise import quantise
from tests.torch.gpu.fp8 import checkpoints


@pytest.fixture(scope="session")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 blocks, as the article's model has; never changed."""
    return checkpoints.gliclass(tmp_path_factory.mktemp("deep") / "bf16", blocks=24)


@pytest.fixture(scope="session")
def deep_fp8(deep: Path) -> Path:
    """The same, quantised; never changed."""
    quantise(deep, deep.parent / "fp8")
    return deep.parent / "fp8"


@pytest.fixture(scope="session")
def _shallow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.gliclass(tmp_path_factory.mktemp("shallow") / "bf16", blocks=2)


@pytest.fixture
def shallow(_shallow: Path, tmp_path: Path) -> Path:
    """Two blocks, the test's own to change."""
    return Path(shutil.copytree(_shallow, tmp_path / "bf16"))
