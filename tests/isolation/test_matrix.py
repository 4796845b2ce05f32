"""The matrix: every operation of the OpenAPI document against everybody who may not do it, or may not do it here.

Rows are ``EVERY_OPERATION`` (tests/api/operations.py); columns are those of tests/isolation/columns.py. Each cell has one exact
status, and what is foreign is answered as what is not there, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from coatcheck.api.app import routed_app
from coatcheck.api.openapi import document
from coatcheck.app.compose import App
from tests.api.operations import EVERY_OPERATION, NOTHING, PUBLIC, Ids, Row
from tests.isolation import secret
from tests.isolation.answers import Said, said
from tests.isolation.columns import FORGED, REFUSED, STRANGERS, Forgery
from tests.isolation.holdings import holdings_of
from tests.isolation.rows import mentioning
from tests.isolation.world import CANARY, World, new_world
from tests.postgres import Postgres

DOCUMENTED = document(routed_app())["paths"]
ROWS = [pytest.param(method, row, id=f"{method} {path}") for (method, path), row in EVERY_OPERATION.items()]
HOSTILE_BODIES = (b"", b'{"a":1,"a":2}', b"\xff", b"{" * 5_000)


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def world(app: App) -> AsyncIterator[World]:
    async with new_world(app) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def nowhere(world: World) -> Said:
    """What a stranger is answered where there is nothing at all."""
    found = said(await world.http.get("/v1/nowhere"))
    assert found.status == 401
    assert b":unauthenticated" in found.body
    return found


@pytest.fixture(scope="module")
def before(world: World, postgres: Postgres, shared_database: str) -> set[str]:
    """Every row that speaks of the owner or of what is the owner's, as it stands before anybody knocks."""
    return mentioning(postgres.owner_url(shared_database), world.the_owners)


def takes_json(row: Row) -> bool:
    """Whether the document gives the operation a JSON body."""
    method, path = next(operation for operation, one in EVERY_OPERATION.items() if one is row)
    return "application/json" in DOCUMENTED[path][method.lower()].get("requestBody", {}).get("content", {})


def test_every_operation_of_the_document_has_a_row_and_every_row_an_operation() -> None:
    documented = {(method.upper(), path) for path, item in DOCUMENTED.items() for method in item}

    without_row = sorted(documented - set(EVERY_OPERATION) - PUBLIC)
    assert not without_row, (
        f"{without_row}: no row in the matrix. Add one to EVERY_OPERATION in tests/api/operations.py (the operation that it asks"
        " for, its path with the names of Ids in braces, a body, the status its holder gets); where it names something new, add"
        " that to Ids there and to holdings_of in tests/isolation/holdings.py."
    )
    assert sorted(set(EVERY_OPERATION) - documented) == []
    assert sorted(PUBLIC - documented) == []


@pytest.mark.parametrize("column", REFUSED)
@pytest.mark.parametrize(("method", "row"), ROWS)
async def test_T01_who_proves_nothing_gets_the_one_refusal(
    world: World, nowhere: Said, before: set[str], method: str, row: Row, column: str
) -> None:
    answer = await row.send(world.http, method, world.theirs, world.refused[column])

    assert said(answer) == nowhere


@pytest.mark.parametrize(("method", "row"), ROWS)
async def test_T02_who_proves_nothing_has_no_body_read(world: World, nowhere: Said, method: str, row: Row) -> None:
    path = row.request(world.theirs)[0]

    answers = [await world.http.request(method, path, content=body) for body in HOSTILE_BODIES]

    assert {said(answer) for answer in answers} == {nowhere}


@pytest.mark.parametrize("column", STRANGERS)
@pytest.mark.parametrize(("method", "row"), ROWS)
async def test_T04_a_stranger_finds_nothing(world: World, before: set[str], method: str, row: Row, column: str) -> None:
    stranger = world.strangers[column]

    there = await row.send(world.http, method, world.theirs, stranger.headers)
    nowhere = await row.send(world.http, method, NOTHING, stranger.headers)

    assert there.status_code == stranger.expects(row), there.text
    assert world.betrayed_by(there, but=stranger.knows) == []
    if there.status_code >= 400 or row.names_something:
        assert said(there) == said(nowhere)


@pytest.mark.parametrize(("method", "row"), ROWS)
async def test_T03_nobody_does_what_its_credential_does_not_grant(world: World, before: set[str], method: str, row: Row) -> None:
    """Not to its own either: every other right is of no help."""
    without = await world.without(row.operation)

    there = await row.send(world.http, method, world.theirs, without)
    nowhere = await row.send(world.http, method, NOTHING, without)

    assert said(there) == said(nowhere)
    assert there.status_code == 403
    assert there.json()["type"].endswith(":forbidden")


@pytest.mark.parametrize("forgery", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize(("method", "row"), ROWS)
async def test_T05_a_claim_to_be_of_the_owners_tenant_gives_nothing(
    world: World, before: set[str], method: str, row: Row, forgery: Forgery
) -> None:
    plain = await row.send(world.http, method, NOTHING, world.foreigner.caller.headers)

    claimed = await forgery.send(world, method, row)

    assert claimed.status_code == forgery.expects(takes_json(row), plain.status_code), claimed.text
    assert world.betrayed_by(claimed) == []
    if claimed.status_code == plain.status_code >= 400:
        assert said(claimed) == said(plain)


def test_after_all_of_that_not_a_row_of_the_owners_has_changed(
    world: World, before: set[str], postgres: Postgres, shared_database: str
) -> None:
    after = mentioning(postgres.owner_url(shared_database), world.the_owners)

    assert any(CANARY in row for row in before)
    # The owner's own narrow credentials make keys and delegates as narrow as themselves, in the owner's name: its revision rises.
    stood, stands = ({without_revision(row) for row in rows} for rows in (before, after))
    assert stood - stands == set()
    assert {row.partition(":")[0] for row in stands - stood} <= {"api_keys", "audit", "delegations"}


def without_revision(row: str) -> str:
    """A row as it is, but for the permission revision that ends a principal's."""
    return re.sub(r",\d+\)$", ")", row) if row.startswith("principals:") else row


@pytest.mark.parametrize(("method", "row"), ROWS)
async def test_the_owner_does_all_of_it(world: World, method: str, row: Row) -> None:
    """Last, since it erases: were these requests wrong in themselves, nothing above would have been shown."""
    mine: Ids = world.theirs if method == "GET" else await holdings_of(world.owner, f"mine-{secret.word(8)}")

    answer = await row.send(world.http, method, mine, world.owner.caller.headers)

    assert answer.status_code == row.status, answer.text
