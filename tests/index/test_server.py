"""What only the server adapter owes: whom it talks to, and how it prepares the collection."""

from __future__ import annotations

import pytest
from qdrant_client import AsyncQdrantClient, models

from coatcheck.domain.errors import IndexUnavailable, RefusedToStart
from coatcheck.index.server import ServerIndex, is_loopback
from coatcheck.index.server_collection import prepare


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://localhost:6333", True),
        ("http://127.0.0.1:6333", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:6333", True),
        ("localhost:6333", True),
        ("http://qdrant:6333", False),
        ("https://index.example.org", False),
        ("http://localhost.example.org", False),
        ("http://10.0.0.7:6333", False),
        ("http://user@10.0.0.7:6333", False),
        ("http://127.0.0.1@example.org", False),
    ],
)
def test_only_this_machine_is_loopback(url: str, loopback: bool) -> None:
    assert is_loopback(url) is loopback


async def test_T39_a_server_elsewhere_without_a_key_is_refused() -> None:
    with pytest.raises(RefusedToStart, match="COATCHECK_QDRANT_API_KEY"):
        await ServerIndex.open("http://index.example.org:6333", None, "coatcheck")


async def test_a_server_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(IndexUnavailable):
        await ServerIndex.open("http://127.0.0.1:9", None, "coatcheck")


async def test_a_collection_of_another_shape_is_refused() -> None:
    client = AsyncQdrantClient(":memory:")
    await client.create_collection("coatcheck", vectors_config=models.VectorParams(size=4, distance=models.Distance.COSINE))

    with pytest.raises(RefusedToStart, match="name another one"):
        await prepare(client, "coatcheck", in_memory=True)

    await client.close()


async def test_preparing_a_collection_twice_keeps_it() -> None:
    client = AsyncQdrantClient(":memory:")
    await prepare(client, "coatcheck", in_memory=True)
    config = models.DenseVectorNameConfig(dense=models.DenseVectorConfig(size=4, distance=models.Distance.COSINE))
    await client.create_vector_name("coatcheck", "dense_4", config)

    assert await prepare(client, "coatcheck", in_memory=True) == {"dense_4"}
    await client.close()
