"""The server that the client is tried against."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.outbound.network import WebServer, web_server


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with web_server() as made:
        made.says(b'{"keys": []}')
        yield made
