"""One app for all modules here, on one event loop, and a town of its own for each module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from coatcheck.app.compose import App
from tests import apps
from tests.isolation.town import Town, new_town
from tests.postgres import Postgres


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and pytest_asyncio.is_async_test(item):
            # Ahead of auto mode's own mark, which is for the function's loop: an app lives on one loop only.
            item.add_marker(pytest.mark.asyncio(loop_scope="package"), append=False)


@pytest.fixture(scope="package")
def shared_database(postgres: Postgres) -> Iterator[str]:
    """The name of a migrated database."""
    with postgres.clone() as name:
        yield name


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def app(postgres: Postgres, shared_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    async with apps.app(postgres.login_url(shared_database), tmp_path_factory.mktemp("app"), outbound_allow_loopback=True) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def town(app: App) -> AsyncIterator[Town]:
    async with new_town(app) as made:
        yield made
