"""The response cache for agent frameworks: what it bypasses, what it does not keep, and how long it keeps the rest."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import pytest_asyncio
import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.identity.operations import EVERYTHING, MEMBER
from coatcheck_client import AsyncCoatcheck
from tests import apps
from tests.apps import Caller
from tests.caching import circumstances, lookup, store, why
from tests.isolation import secret
from tests.postgres import Postgres

EMPTY: dict[str, Any] = {"sources": [], "tools": [], "settings": {}, "instructions": "", "session": ""}


@pytest.mark.parametrize("dimension", ["session", "conversation_revision", "sources", "model", "instructions", "tools", "settings"])
@pytest.mark.parametrize("left_out", [True, False])
async def test_what_is_unknown_is_named_and_bypasses(http: httpx.AsyncClient, dimension: str, left_out: bool) -> None:
    await store(http, "an answer")
    body = circumstances(**{dimension: None})
    if left_out:
        del body[dimension]

    found = (await http.post("/v1/cache/lookup", json=body)).json()
    kept = (await http.post("/v1/cache/store", json={**body, "answer": "another", "scope": "0" * 64})).json()

    named = "conversation" if dimension in ("session", "conversation_revision") else dimension
    assert (why(found), found["scope"], found["answer"]) == (f"bypassed:{named}", None, None)
    assert (kept["stored"], kept["reason"]) == (False, named)


async def test_a_source_without_a_revision_is_unknown(http: httpx.AsyncClient) -> None:
    half = [{"id": "a", "revision": "1"}, {"id": "b"}]
    twice = [{"id": "a", "revision": "1"}, {"id": "a", "revision": "2"}]

    assert [why(await lookup(http, sources=sources)) for sources in (half, twice)] == ["bypassed:sources"] * 2


async def test_an_empty_value_is_known_and_says_that_there_is_none(http: httpx.AsyncClient) -> None:
    kept = await store(http, "of nothing", **EMPTY)

    found = await lookup(http, **EMPTY)

    assert kept["stored"]
    assert found["answer"] == "of nothing"


async def test_the_order_of_sources_and_of_keys_makes_no_difference_and_that_of_tools_does(http: httpx.AsyncClient) -> None:
    sources = [{"id": "a", "revision": "1"}, {"id": "b", "revision": "2"}]
    tools = [{"name": "a", "type": "function"}, {"name": "b"}]
    await store(http, "an answer", sources=sources, settings={"temperature": 0, "top_p": 1}, tools=tools)

    turned = await lookup(
        http,
        sources=sources[::-1],
        settings={"top_p": 1, "temperature": 0},
        tools=[{"type": "function", "name": "a"}, {"name": "b"}],
    )
    reordered = await lookup(http, sources=sources, settings={"temperature": 0, "top_p": 1}, tools=tools[::-1])

    assert turned["outcome"] == "hit-exact"
    assert why(reordered) == "ineligible:tools"


async def test_nothing_of_one_dimension_can_be_taken_for_something_of_another(http: httpx.AsyncClient) -> None:
    await store(http, "an answer", **{**EMPTY, "instructions": "a", "model": "b"})

    assert (await lookup(http, **{**EMPTY, "instructions": "b", "model": "a"}))["answer"] is None
    assert (await lookup(http, **{**EMPTY, "instructions": ["a"], "model": "b"}))["answer"] is None


@pytest.mark.parametrize(
    "answer",
    [
        "text",
        "",
        {"role": "assistant", "tool_calls": [{"id": "call_1", "arguments": '{"a": 1.50}'}]},
        [1, 2.5, None, "ß\ud800\x00"],
    ],
)
async def test_an_answer_comes_back_as_it_was(http: httpx.AsyncClient, answer: object) -> None:
    scope = (await lookup(http, session="as it was"))["scope"]
    body = {**circumstances(session="as it was"), "answer": answer, "scope": scope}
    kept = await http.post("/v1/cache/store", content=json.dumps(body).encode(), headers={"Content-Type": "application/json"})

    assert kept.json()["stored"]
    assert (await lookup(http, session="as it was"))["answer"] == answer


async def test_the_newest_answer_replaces_the_older_one(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    await store(http, "first")
    newest = await store(http, "second")

    found = await lookup(http)
    purged = await http.post("/v1/cache/purge", json={})

    assert (found["answer"], found["provenance"]["entry_id"]) == ("second", newest["entry_id"])
    assert purged.json() == {"purged": 1}


async def test_without_the_scope_of_a_lookup_nothing_is_kept(http: httpx.AsyncClient) -> None:
    kept = (await http.post("/v1/cache/store", json={**circumstances(session="n"), "answer": "a"})).json()

    assert (kept["stored"], kept["reason"]) == (False, "scope")
    assert (await lookup(http, session="n"))["answer"] is None


async def test_another_prompt_of_the_same_scope_is_a_miss_and_not_ineligible(http: httpx.AsyncClient) -> None:
    await store(http, "an answer")

    found = await lookup(http, prompt="Summarize the payment terms")

    assert (why(found), found["eligible"]) == ("miss:other-prompt", 1)


@pytest.mark.parametrize("place", ["text", "value", "key"])
async def test_an_answer_with_a_secret_is_not_kept_at_all(http: httpx.AsyncClient, place: str) -> None:
    token = secret.github()
    answer: dict[str, object] = {"text": f"Use {token} for it"} if place == "text" else {"api_key": token}
    answer = {token: "x"} if place == "key" else answer

    kept = await store(http, answer, session="secret")

    assert (kept["stored"], kept["reason"]) == (False, "secret")
    assert (await lookup(http, session="secret"))["answer"] is None


async def test_an_answer_is_found_until_its_time_and_no_longer(http: httpx.AsyncClient) -> None:
    short = await store(http, "short", session="short", ttl_s=0.05)
    await store(http, "long", session="long", ttl_s=10_000_000.0)
    await asyncio.sleep(0.1)

    assert short["stored"]
    assert (await lookup(http, session="short"))["answer"] is None
    longest = (await lookup(http, session="long"))["provenance"]
    assert longest["expires_at"] == _hours_from(longest["stored_at"], 1)


def _hours_from(moment: str, hours: int) -> str:
    return (datetime.fromisoformat(moment) + timedelta(hours=hours)).isoformat().replace("+00:00", "Z")


async def test_the_operation_is_needed_and_publishing_another(app: App, operator: Caller) -> None:
    without = await apps.new_principal(app, operator.tenant_id, MEMBER - {"cache"})
    unpublishing = await apps.new_principal(app, operator.tenant_id, EVERYTHING - {"cache:publish"})

    async with apps.client(app, without) as http:
        refused = await http.post("/v1/cache/lookup", json=circumstances())
    async with apps.client(app, unpublishing) as http:
        reads = await http.post("/v1/cache/lookup", json=circumstances(sharing="tenant"))
        publishes = await http.post("/v1/cache/store", json={**circumstances(sharing="tenant"), "answer": "a", "scope": "0" * 64})

    assert [one.status_code for one in (refused, reads, publishes)] == [403, 200, 403]


@pytest_asyncio.fixture(loop_scope="module")
async def off(fresh_database_url: str, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        apps.app(fresh_database_url, tmp_path, response_cache=False) as one,
        apps.client(one, await apps.new_tenant(one)) as http,
    ):
        yield http


async def test_while_it_is_off_a_lookup_is_bypassed_and_a_store_keeps_nothing(off: httpx.AsyncClient) -> None:
    found = await lookup(off)
    kept = await off.post("/v1/cache/store", json={**circumstances(), "answer": "a", "scope": None})
    purged = await off.post("/v1/cache/purge", json={})

    assert why(found) == "bypassed:off"
    assert kept.json() == {"stored": False, "reason": "off", "entry_id": None, "expires_at": None}
    assert purged.json() == {"purged": 0}


@pytest_asyncio.fixture(loop_scope="module")
async def tight(fresh_database_url: str, tmp_path: Path) -> AsyncIterator[tuple[App, httpx.AsyncClient]]:
    limits: dict[str, object] = {
        "response_cache_max_answer_bytes": 64,
        "response_cache_max_entries": 3,
        "response_cache_timeout_s": 2,
    }
    async with apps.app(fresh_database_url, tmp_path, **limits) as one, apps.client(one, await apps.new_tenant(one)) as http:
        yield one, http


async def test_sizes_are_bounded_and_the_oldest_go(tight: tuple[App, httpx.AsyncClient]) -> None:
    _, http = tight
    for number in range(5):
        await store(http, f"answer {number}", conversation_revision=str(number))

    large = await store(http, "x" * 63)
    found = [(await lookup(http, conversation_revision=str(number)))["answer"] for number in range(5)]

    assert (large["stored"], large["reason"]) == (False, "too-large")
    assert found == [None, None, "answer 2", "answer 3", "answer 4"]


async def test_stores_at_one_moment_are_all_kept_and_bounded(fresh_database_url: str, tmp_path: Path) -> None:
    limits: dict[str, object] = {"response_cache_max_entries": 3, "response_cache_timeout_s": 30}
    async with apps.app(fresh_database_url, tmp_path, **limits) as one, apps.client(one, await apps.new_tenant(one)) as http:
        kept = await asyncio.gather(
            *(store(http, f"answer {number}", conversation_revision=f"at once {number}") for number in range(12))
        )

        assert [each["stored"] for each in kept] == [True] * 12
        assert (await http.get("/v1/cache")).json()["entries"] == 3


async def test_a_cache_that_is_late_is_bypassed_and_works_again_afterwards(
    postgres: Postgres, tight: tuple[App, httpx.AsyncClient], fresh_database_url: str
) -> None:
    """Somebody holds the table: the agent is told within its patience, generates its answer, and nothing is lost."""
    _, http = tight
    await store(http, "an answer")
    scope = (await lookup(http))["scope"]
    owner = postgres.owner_url(sa.make_url(fresh_database_url).database or "").replace("+psycopg", "")

    async with await psycopg.AsyncConnection.connect(owner) as holding:
        await holding.execute("LOCK TABLE cache_entries IN ACCESS EXCLUSIVE MODE")
        started = time.monotonic()
        found = await lookup(http)
        kept = (await http.post("/v1/cache/store", json={**circumstances(), "answer": "b", "scope": scope})).json()
        took_s = time.monotonic() - started

    assert why(found) == "bypassed:unavailable"
    assert (kept["stored"], kept["reason"]) == (False, "unavailable")
    assert took_s < 6
    assert (await lookup(http))["answer"] == "an answer"


async def test_the_sdk_carries_an_agents_turn(app: App, operator: Caller) -> None:
    """As docs/response-cache.md has it."""
    known: Any = {**circumstances(), "session": "sdk"}
    prompt = known.pop("prompt")

    async with AsyncCoatcheck("http://test", operator.key, transport=httpx.ASGITransport(app.asgi)) as client:
        found = await client.cache_lookup(prompt, **known)
        kept = await client.cache_store(prompt, {"text": "Ninety days."}, scope=found.scope, **known)
        again = await client.cache_lookup(prompt, **known)
        stats = await client.cache_stats()
        purged = await client.cache_purge(session="sdk")

    assert (found.outcome, kept.stored) == ("ineligible", True)
    assert (again.outcome, again.answer) == ("hit-exact", {"text": "Ninety days."})
    assert (stats.enabled, stats.entries, stats.answer_bytes) == (True, 1, len('{"text":"Ninety days."}'))
    assert purged.purged == 1


async def test_only_an_operator_sees_what_the_tenant_has(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    member = await apps.new_principal(app, operator.tenant_id, MEMBER)
    async with apps.client(app, member) as theirs:
        await store(theirs, "theirs")
        refused = await theirs.get("/v1/cache", params={"whose": "tenant"})
        own = await http.get("/v1/cache")
        tenants = await http.get("/v1/cache", params={"whose": "tenant"})

    assert refused.status_code == 403
    assert (own.json()["entries"], tenants.json()["entries"]) == (0, 1)
