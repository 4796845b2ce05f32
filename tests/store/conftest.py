"""Data directories with an embedded server's cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coatcheck.store.embedded import EmbeddedServer
from tests.folders import open_folder


@pytest.fixture(scope="session")
def made() -> Iterator[Path]:
    """A data directory whose server was started once and stopped in order."""
    with open_folder() as folder:
        EmbeddedServer.start(folder / "data").stop()
        yield folder / "data"


@pytest.fixture
def data_dir(made: Path) -> Iterator[Path]:
    """A copy of it: the same as a first start, and sooner there."""
    with open_folder() as folder:
        subprocess.run(["cp", "-a", str(made), str(folder)], check=True)
        yield folder / "data"


@pytest.fixture
def fresh_dir() -> Iterator[Path]:
    """A data directory that does not exist yet."""
    with open_folder() as folder:
        yield folder / "data"
