"""Both adapters, each over a real engine: the embedded one, the client's in-memory one, and a server where one is given."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from coatcheck.domain.ports import VectorIndex
from coatcheck.index.edge import EdgeIndex
from coatcheck.index.server import IN_MEMORY, ServerIndex

SERVER_URL = os.environ.get("COATCHECK_TEST_QDRANT_URL")
ADAPTERS = [
    "edge",
    "in-memory",
    pytest.param("server", marks=pytest.mark.skipif(SERVER_URL is None, reason="COATCHECK_TEST_QDRANT_URL is not set")),
]


@pytest.fixture(params=ADAPTERS)
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    opened: VectorIndex
    if request.param == "edge":
        opened = EdgeIndex.open(tmp_path / "index")
    elif request.param == "in-memory":
        opened = await ServerIndex.open(IN_MEMORY, None, "coatcheck")
    else:
        assert SERVER_URL is not None
        key = os.environ.get("COATCHECK_TEST_QDRANT_API_KEY")
        opened = await ServerIndex.open(SERVER_URL, key, f"coatcheck-test-{uuid4()}")
    yield opened
    await opened.close()
