"""One app for each module, on the module's event loop: its tests keep apart by tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from coatcheck.app.compose import App
from tests import apps
from tests.apps import Caller


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    async with apps.app(database_url, tmp_path_factory.mktemp("app")) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def operator(app: App) -> Caller:
    return await apps.new_tenant(app)


@pytest_asyncio.fixture(loop_scope="module")
async def http(app: App, operator: Caller) -> AsyncIterator[httpx.AsyncClient]:
    async with apps.client(app, operator) as client:
        yield client
