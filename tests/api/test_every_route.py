"""One table over every operation of the OpenAPI document: who is refused, and in which words.

The first two tests need no more than ``client`` and ``key`` and hold over the real app too; the others look behind the routers.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from coatcheck.api.app import routed_app
from coatcheck.api.openapi import document
from coatcheck.domain.errors import CoatcheckError, Erased, Forbidden, NotFound, StoreUnavailable
from tests.api.operations import EVERY_OPERATION, PUBLIC, Row
from tests.api.standins import Bench, raising

ROWS = pytest.mark.parametrize(
    ("method", "row"), [pytest.param(method, row, id=f"{method} {path}") for (method, path), row in EVERY_OPERATION.items()]
)


def without_request(answer: httpx.Response) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers without what names the one request."""
    body = answer.json()
    assert body.pop("instance").startswith("urn:uuid:")
    return answer.status_code, body, {name: value for name, value in answer.headers.items() if name != "x-request-id"}


def test_the_table_holds_every_operation_of_the_document() -> None:
    documented = {(method.upper(), path) for path, operations in document(routed_app())["paths"].items() for method in operations}

    assert documented == set(EVERY_OPERATION) | PUBLIC


@ROWS
async def test_without_a_credential_every_route_gives_the_one_refusal(client: httpx.AsyncClient, method: str, row: Row) -> None:
    nowhere = without_request(await client.request("GET", "/v1/nowhere"))

    for content in (b"", b'{"a":1,"a":2}', b"\xff"):
        answer = without_request(await client.request(method, row.path, content=content))
        assert answer == nowhere
    assert nowhere[0] == 401
    assert nowhere[1]["type"].endswith(":unauthenticated")


@ROWS
@pytest.mark.parametrize("error", [Forbidden, NotFound, Erased, StoreUnavailable], ids=lambda error: error.slug)
async def test_every_route_gives_its_use_cases_error_and_nothing_else(
    bench: Bench, authorized: dict[str, str], method: str, row: Row, error: type[CoatcheckError]
) -> None:
    bench.use_cases[row.use_case] = raising(error())

    async with bench.client() as client:
        answer = await client.request(method, row.path, json=row.body, headers=authorized)

    status, body, _ = without_request(answer)
    assert status == error.status
    assert body == {
        "type": f"urn:coatcheck:problem:{error.slug}",
        "title": error().title,
        "status": error.status,
        "detail": error().detail,
        "retryable": error.retryable,
    }


@ROWS
async def test_every_route_documents_what_it_answers(bench: Bench, authorized: dict[str, str], method: str, row: Row) -> None:
    documented = next(
        operations[method.lower()]["responses"]
        for path, operations in document(routed_app())["paths"].items()
        if EVERY_OPERATION.get((method, path)) is row
    )

    statuses = {"400", "401", "403", "413", "422", "500", "503"} | ({"404"} if row.names_something else set())

    assert statuses <= set(documented)
