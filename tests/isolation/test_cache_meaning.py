"""Comparison by meaning: only within what is eligible already, and no near-opposite for another (T20, CacheAttack).

The app takes any two vectors for alike here, so that nothing but the scope and the guard can keep two prompts apart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests import apps
from tests.caching import PROMPT, lookup, store, why
from tests.isolation import secret
from tests.isolation.town import Person, Town, new_town
from tests.memory.cache_pairs import NEAR_OPPOSITES, SAME_QUESTION
from tests.postgres import Postgres

OPPOSITES = [pytest.param(kind, pairs, id=kind) for kind, pairs in NEAR_OPPOSITES.items()]
PARAPHRASE = "Could you please summarise the renewal terms?"


async def test_a_rephrased_prompt_of_ones_own_hits_with_its_similarity(town: Town) -> None:
    kept = await store(town.alice.http, "an answer", semantic=True)

    found = await lookup(town.alice.http, prompt=PARAPHRASE, semantic=True)

    assert (found["outcome"], found["answer"]) == ("hit-semantic", "an answer")
    assert found["provenance"]["entry_id"] == kept["entry_id"]
    assert found["provenance"]["match"] == "semantic"
    assert 0 < found["provenance"]["similarity"] < 1


@pytest.mark.parametrize(("stored", "asked"), [(False, True), (True, False)])
async def test_it_takes_both_the_one_who_stores_and_the_one_who_asks(town: Town, stored: bool, asked: bool) -> None:
    await store(town.alice.http, "an answer", semantic=stored, session=f"{stored}")

    found = await lookup(town.alice.http, prompt=PARAPHRASE, semantic=asked, session=f"{stored}")

    assert why(found) == "miss:other-prompt"


@pytest.mark.parametrize(("kind", "pairs"), OPPOSITES)
async def test_T20_near_opposites_miss_however_alike_their_vectors_are(town: Town, kind: str, pairs: list[tuple[str, str]]) -> None:
    for number, (one, other) in enumerate(pairs):
        session = f"{kind} {number}"
        await store(town.alice.http, "of the one", prompt=one, semantic=True, session=session)

        found = await lookup(town.alice.http, prompt=other, semantic=True, session=session)

        assert found["outcome"] == "miss", (one, other)
        assert found["reason"] in ("guard", "other-prompt")
        assert found["answer"] is None


@pytest.mark.parametrize("name", ["bob", "carol", "operator", "dave"])
async def test_T20_somebody_elses_entry_is_not_even_compared(town: Town, name: str) -> None:
    await store(town.alice.http, "of alice", semantic=True)
    person = town.everybody[name]
    await store(person.http, "of another prompt", prompt="Which port does staging use?", semantic=True)

    found = await lookup(person.http, prompt=PARAPHRASE, semantic=True)

    assert (why(found), found["eligible"]) == ("miss:guard", 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "small-2"},
        {"tools": []},
        {"instructions": "Other ones."},
        {"settings": {"temperature": 1}},
        {"sources": [{"id": "contract-17", "revision": "4"}]},
        {"conversation_revision": "8"},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_no_likeness_helps_across_a_dimension(town: Town, changes: dict[str, object]) -> None:
    await store(town.alice.http, "an answer", semantic=True)

    found = await lookup(town.alice.http, prompt=PARAPHRASE, semantic=True, **changes)

    assert found["outcome"] == "ineligible"
    assert found["answer"] is None


async def test_what_stands_before_the_last_message_has_to_be_the_same(town: Town) -> None:
    def prompt(before: str, last: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": before}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": last}]

    await store(town.alice.http, "an answer", prompt=prompt("My contract is A.", PROMPT), semantic=True, session="frame")

    same = await lookup(town.alice.http, prompt=prompt("My contract is A.", PARAPHRASE), semantic=True, session="frame")
    other = await lookup(town.alice.http, prompt=prompt("My contract is B.", PARAPHRASE), semantic=True, session="frame")

    assert same["outcome"] == "hit-semantic"
    assert why(other) == "miss:other-prompt"


async def test_a_prompt_with_a_secret_has_no_vector(town: Town) -> None:
    token = secret.github()
    await store(town.alice.http, "an answer", prompt=f"Use {token} to log in", semantic=True, session="token")

    exact = await lookup(town.alice.http, prompt=f"Use {token} to log in", semantic=True, session="token")
    polite = await lookup(town.alice.http, prompt=f"Please use {token} to log in", semantic=True, session="token")

    assert exact["outcome"] == "hit-exact"
    assert why(polite) == "miss:other-prompt"


@pytest_asyncio.fixture(loop_scope="package")
async def with_a_real_embedder(postgres: Postgres, tmp_path: Path) -> AsyncIterator[Person]:
    """The default threshold and the packaged model."""
    with postgres.clone() as name:
        changes: dict[str, object] = {"embedder": "auto", "response_cache_similarity": 0.9}
        async with apps.app(postgres.login_url(name), tmp_path, **changes) as app, new_town(app) as town:
            yield town.alice


async def test_the_threshold_lets_rephrasings_through(with_a_real_embedder: Person) -> None:
    http = with_a_real_embedder.http

    hits = []
    for number, (one, other) in enumerate(SAME_QUESTION):
        await store(http, "an answer", prompt=one, semantic=True, session=f"pair {number}")
        found = await lookup(http, prompt=other, semantic=True, session=f"pair {number}")
        hits.append((round((found["provenance"] or {"similarity": 0})["similarity"], 3), why(found), other))

    # One long greeting lies at 0.89, below the default threshold: a miss costs a generation, and nothing else.
    assert len([hit for hit in hits if hit[1] == "hit-semantic"]) >= len(SAME_QUESTION) - 1, hits
