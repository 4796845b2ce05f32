"""Two things to ask: ``client`` before a bench of made-up routes behind the real edge, ``served`` before the whole real app."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
import structlog

from coatcheck.app.compose import App
from coatcheck.identity.credentials import ApiKey
from coatcheck.ops.logging import configure
from tests import apps
from tests.api.bench import Bench
from tests.apps import Caller
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
    """Before the bench. Sends no credential by itself."""
    async with bench.client() as client:
        yield client


@pytest.fixture
def authorized(key: ApiKey) -> dict[str, str]:
    return {"Authorization": f"Bearer {key.text}"}


@dataclass(frozen=True, slots=True)
class Served:
    """The whole app over real parts, and a tenant's operator."""

    app: App
    http: httpx.AsyncClient
    """Sends no credential by itself."""
    operator: Caller


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """One app for a module; its tests run on the module's loop (``pytest.mark.asyncio(loop_scope="module")``)."""
    folder: Path = tmp_path_factory.mktemp("served")
    async with apps.app(database_url, folder) as app, apps.client(app) as http:
        yield Served(app, http, await apps.new_tenant(app))
