"""What is foreign costs what is unknown: the same statements in the same order, and about the same time."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from tests.api.operations import EVERY_OPERATION, NOTHING, Ids, Row
from tests.isolation.town import Person, Town, left_by

WATCHED: ContextVar[list[str] | None] = ContextVar("WATCHED", default=None)
LEFT_OUT = ("FROM tenant_limits", "set_config('role'", "RESET ROLE")
SAMPLES = 15
"""Pairs measured; interleaved, so that a busy machine slows both."""
NAMING = [
    pytest.param(method, row, id=f"{method} {path}")
    for (method, path), row in EVERY_OPERATION.items()
    if row.names_a_session and method in ("GET", "PATCH", "DELETE", "POST")
]


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def alices(town: Town) -> AsyncIterator[Ids]:
    yield await left_by(town.alice, "alices")


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement that the driver sends on our behalf meanwhile, its text without parameters, whichever way it was asked.

    Not the asker's own limits, which are read anew every few seconds whatever is asked, nor what begins and ends a transaction.
    """
    sent: list[str] = []
    execute = psycopg.AsyncCursor.execute

    def note(statement: object) -> None:
        text = str(statement)
        if WATCHED.get() is sent and not any(part in text for part in LEFT_OUT):  # and not for the reconciler, whose walk goes on
            sent.append(text)

    async def noted(self: psycopg.AsyncCursor[Any], query: Any, *rest: Any, **named: Any) -> Any:
        note(query)
        return await execute(self, query, *rest, **named)

    watched = WATCHED.set(sent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.AsyncCursor, "execute", noted)
        try:
            yield sent
        finally:
            WATCHED.reset(watched)


async def ask(person: Person, method: str, row: Row, ids: Ids) -> int:
    path, body = row.request(ids)
    return (await person.http.request(method, path, json=body)).status_code


@pytest.mark.parametrize("name", ["bob", "dave"])
@pytest.mark.parametrize(("method", "row"), NAMING)
async def test_T36_a_foreign_id_takes_the_statements_of_an_unknown_one(
    town: Town, alices: Ids, name: str, method: str, row: Row
) -> None:
    person = town.everybody[name]
    assert await ask(person, method, row, NOTHING) == 404  # what is kept of its own tenant's limits is asked for once

    with statements() as foreign:
        assert await ask(person, method, row, alices) == 404
    with statements() as unknown:
        assert await ask(person, method, row, NOTHING) == 404

    assert foreign == unknown
    assert foreign


async def test_what_is_compared_holds_the_statements_of_either_way_to_the_database(town: Town, alices: Ids) -> None:
    """By the engine, and by the driver's own cursor."""
    with statements() as sent:
        assert await ask(town.alice, "GET", EVERY_OPERATION["GET", "/v1/sessions/{session_id}"], alices) == 200

    assert any("JOIN api_keys" in statement for statement in sent)
    assert any("FROM sessions" in statement for statement in sent)


async def test_a_foreign_id_takes_about_the_time_of_an_unknown_one(town: Town, alices: Ids) -> None:
    row = EVERY_OPERATION["GET", "/v1/manifests/{manifest_id}/window"]
    took: dict[str, list[float]] = {"foreign": [], "unknown": []}

    for _ in range(SAMPLES):
        for name, ids in (("foreign", alices), ("unknown", NOTHING)):
            started = time.perf_counter()
            await ask(town.dave, "GET", row, ids)
            took[name].append(time.perf_counter() - started)

    foreign, unknown = statistics.median(took["foreign"]), statistics.median(took["unknown"])
    assert max(foreign, unknown) < 2 * min(foreign, unknown)
