"""One app and one town for each module, on the module's event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from coatcheck.app.compose import App
from tests import apps
from tests.isolation.town import Town, new_town


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and pytest_asyncio.is_async_test(item):
            # Ahead of auto mode's own mark, which is for the function's loop: an app lives on one loop only.
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    async with apps.app(database_url, tmp_path_factory.mktemp("app")) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(app: App) -> AsyncIterator[Town]:
    async with new_town(app) as made:
        yield made
