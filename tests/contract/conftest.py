"""One app for each module: its tests keep apart by tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from coatcheck.app.compose import App
from tests import apps
from tests.apps import Caller


@pytest.fixture
async def app(database_url: str, tmp_path: Path) -> AsyncIterator[App]:
    async with apps.app(database_url, tmp_path) as one:
        yield one


@pytest.fixture
async def operator(app: App) -> Caller:
    return await apps.new_tenant(app)


@pytest.fixture
async def http(app: App, operator: Caller) -> AsyncIterator[httpx.AsyncClient]:
    async with apps.client(app, operator) as client:
        yield client
