"""Nobody's words move anybody else's scores: order and ranks of a recall are the same whatever others store."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.isolation.town import Person, Town

QUERIES = ("gateway timeout on port 8443", "rotate the signing key", "шлюз отвечает медленно", "gateway", "key port rotate")
SUBJECTS = ("gateway", "signing key", "port 8443", "timeout", "deploy", "billing export", "шлюз", "cache")
DOINGS = ("is rotated", "answers slowly", "отвечает медленно", "was restarted", "needs a longer timeout", "is on port 8443")


def sayings(seed: int, count: int, *, words: tuple[str, ...] = SUBJECTS) -> list[dict[str, Any]]:
    """Turns that mention these words in every mixture, no two alike."""
    rng = random.Random(seed)
    return [
        {
            "role": ("user", "assistant")[number % 2],
            "content": f"Note {number} of {seed}: the {rng.choice(words)} {rng.choice(DOINGS)}, and the {rng.choice(words)} "
            f"{rng.choice(DOINGS)}. " * rng.randint(1, 3),
        }
        for number in range(count)
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def mine(town: Town) -> AsyncIterator[str]:
    yield (await town.alice.compact("mine", sayings(1, 60)))["session_id"]


async def ranks(person: Person, session: str | None) -> dict[str, list[tuple[str, dict[str, int | None]]]]:
    """For each query the hits in their order, each with its rank in every leg."""
    return {query: [(hit["sha256"], hit["ranks"]) for hit in await person.recall(query, session, top_k=20)] for query in QUERIES}


@pytest.mark.parametrize("other", ["dave", "bob"])
async def test_T22_five_hundred_segments_of_another_move_nothing(town: Town, mine: str, other: str) -> None:
    everywhere, in_session = await ranks(town.alice, None), await ranks(town.alice, mine)
    assert all(everywhere.values())

    made = await town.everybody[other].compact("theirs", sayings(2, 500, words=("gateway", "port 8443", *QUERIES)))

    assert made["segments"]["total"] == 500
    assert await ranks(town.alice, None) == everywhere
    assert await ranks(town.alice, mine) == in_session


async def test_what_one_may_read_oneself_does_move_them(town: Town, mine: str) -> None:
    """Else the test above could not fail."""
    before = await ranks(town.alice, mine)

    await town.carol.compact("public", sayings(3, 500, words=("gateway", "port 8443", *QUERIES)), visibility="public")

    assert await ranks(town.alice, mine) != before
