"""Two apps for each module, and a tenant for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from coatcheck.ops import faults
from tests.faults.pair import Pair, Scene, scene, two_apps
from tests.postgres import Postgres


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(postgres: Postgres, database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("pair")
    async with two_apps(postgres, database_url, folder) as both:
        yield both


@pytest_asyncio.fixture(loop_scope="module")
async def at(pair: Pair) -> AsyncIterator[Scene]:
    async with scene(pair) as one:
        yield one


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    """What a test armed is over with it, however it ends."""
    yield
    faults.disarm()
