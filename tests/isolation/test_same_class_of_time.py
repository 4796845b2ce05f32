"""What is foreign costs what is unknown: the same statements in the same order, and about the same time."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pytest
import pytest_asyncio
import sqlalchemy as sa

from coatcheck.app.compose import App
from tests.api.operations import EVERY_OPERATION, NOTHING, Ids, Row
from tests.isolation.town import Person, Town, left_by

WATCHED: ContextVar[list[str] | None] = ContextVar("WATCHED", default=None)
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
def statements(app: App) -> Iterator[list[str]]:
    """Every statement that the app sends on our behalf meanwhile, its text without parameters.

    Not the asker's own limits, which are read anew every few seconds whatever is asked.
    """
    engine = app.parts.database._engine.sync_engine
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if WATCHED.get() is sent and "FROM tenant_limits" not in statement:  # and not for the reconciler, whose walk goes on
            sent.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    watched = WATCHED.set(sent)
    try:
        yield sent
    finally:
        WATCHED.reset(watched)
        sa.event.remove(engine, "before_cursor_execute", note)


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

    with statements(town.app) as foreign:
        assert await ask(person, method, row, alices) == 404
    with statements(town.app) as unknown:
        assert await ask(person, method, row, NOTHING) == 404

    assert foreign == unknown
    assert foreign


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
