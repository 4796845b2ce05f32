"""The cache tells nobody what others have in it: not by words, not by work, not by time (T22)."""

from __future__ import annotations

import statistics
import time

import pytest
import sqlalchemy as sa

from coatcheck.identity.scopes import tenant_scope
from coatcheck.store.database import WorkerTransaction
from tests.apps import Caller, client
from tests.caching import circumstances, lookup, store
from tests.isolation.test_same_class_of_time import statements
from tests.isolation.town import Town
from tests.windows import window

SAMPLES = 25


@pytest.mark.parametrize("name", ["bob", "dave"])
@pytest.mark.parametrize("semantic", [False, True])
async def test_what_alice_has_costs_bob_no_statement_more_or_less(town: Town, name: str, semantic: bool) -> None:
    person, session = town.everybody[name], f"{name} {semantic}"

    with statements() as cold:
        first = await lookup(person.http, session=session, semantic=semantic)
    await store(town.alice.http, "of alice", session=session, semantic=True)
    with statements() as warm:
        second = await lookup(person.http, session=session, semantic=semantic)

    assert first == second
    assert cold == warm
    assert len([one for one in warm if "FROM cache_entries" in one]) == (4 if semantic else 3)


async def test_what_alice_has_costs_bob_no_time(town: Town) -> None:
    """Pairs, interleaved: a prompt that Alice has asked and one that nobody has."""
    for number in range(SAMPLES):
        await store(town.alice.http, "of alice", prompt=f"warm {number}")
    took: dict[str, list[float]] = {"warm": [], "cold": []}

    for number in range(SAMPLES):
        for name, times in took.items():
            started = time.perf_counter()
            await lookup(town.bob.http, prompt=f"{name} {number}")
            times.append(time.perf_counter() - started)

    warm, cold = statistics.median(took["warm"]), statistics.median(took["cold"])
    assert max(warm, cold) < 2 * min(warm, cold)


async def test_no_two_principals_have_a_digest_in_common(town: Town) -> None:
    """Equal prompts, equal circumstances: whoever sees the rows cannot tell that they were, and no look-up walks over another's."""
    for person in (town.alice, town.bob, town.carol):
        await store(person.http, "an answer", session="", semantic=True, prompt="the same for all")

    async def digests(tx: WorkerTransaction) -> list[tuple[str, ...]]:
        found = await tx.connection.execute(
            sa.text(
                "SELECT scope, sharing, prompt, frame, guard FROM cache_entries WHERE answer = convert_to('\"an answer\"', 'UTF8')"
            )
        )
        return [tuple(row) for row in found]

    rows = await town.app.parts.database.work(tenant_scope(town.alice.tenant_id), digests)

    assert len(rows) == 3
    for column in zip(*rows, strict=True):
        assert len(set(column)) == 3


async def test_no_row_holds_a_word_of_the_request(town: Town) -> None:
    """Prompt, instructions, tools, names of models, sources and conversations are digests; the answer alone is kept."""
    words = {name: f"canary{name}" for name in ("session", "model", "instructions", "prompt", "source", "tool", "setting")}
    body = circumstances(
        session=words["session"],
        model=words["model"],
        instructions=words["instructions"],
        prompt=words["prompt"],
        sources=[{"id": words["source"], "revision": words["source"]}],
        tools=[{"name": words["tool"]}],
        settings={words["setting"]: 1},
    )
    await store(town.alice.http, "an answer", semantic=True, **{k: v for k, v in body.items() if k != "semantic"})

    async def everything(tx: WorkerTransaction) -> str:
        rows = [
            str(row)
            for table in ("cache_entries", "cache_ties")
            for row in await tx.connection.execute(sa.text(f"SELECT t::text FROM {table} t"))
        ]
        return "\n".join(rows)

    kept = await town.app.parts.database.work(tenant_scope(town.alice.tenant_id), everything)

    assert kept
    for word in words.values():
        assert word not in kept
        assert word.encode().hex() not in kept


async def test_a_key_kept_to_a_session_does_not_learn_that_another_changed(town: Town) -> None:
    inside, outside = await town.operator.compact("inside"), await town.operator.compact("outside")
    key = (await town.operator.http.post("/v1/admin/keys", json={"name": "n", "sessions": [inside["session_id"]]})).json()
    sources = [{"id": outside["session_id"], "revision": "1"}]
    narrow = Caller(town.operator.tenant_id, town.operator.principal_id, key["key"])
    async with client(town.app, narrow) as http:
        await store(http, "an answer", session="inside", sources=sources)
        before = await lookup(http, session="inside", sources=sources)
        await town.operator.compact("outside", window(mark="what it may not read"))
        after = await lookup(http, session="inside", sources=sources)

    assert (before["answer"], after["answer"]) == ("an answer", "an answer")
