"""The HTTP API over stand-ins for the use cases: what the edge, the routers and the problems do by themselves.

``client`` and ``key`` are all that the tests of test_contract.py and test_every_route.py need: with the same two fixtures over
the real app they hold there too.
"""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import structlog

from coatcheck.identity.credentials import ApiKey
from coatcheck.ops.logging import configure
from tests.api.standins import Bench
from tests.identity.directory import MemoryDirectory


@pytest.fixture(autouse=True)
def log_text() -> Iterator[io.StringIO]:
    """What the service logs meanwhile, as it would in production."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure("info", stream=stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def directory() -> MemoryDirectory:
    return MemoryDirectory()


@pytest.fixture
def bench(directory: MemoryDirectory) -> Bench:
    return Bench(directory)


@pytest.fixture
def key(directory: MemoryDirectory) -> ApiKey:
    return directory.add()


@pytest.fixture
async def client(bench: Bench) -> AsyncIterator[httpx.AsyncClient]:
    """Sends no credential by itself."""
    async with bench.client() as client:
        yield client


@pytest.fixture
def authorized(key: ApiKey) -> dict[str, str]:
    return {"Authorization": f"Bearer {key.text}"}
