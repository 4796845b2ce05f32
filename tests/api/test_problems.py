"""Every error as RFC 9457 writes it, FastAPI's own answers replaced."""

from __future__ import annotations

import inspect
from uuid import UUID

import pytest
from fastapi import HTTPException, Response

from coatcheck.api.problems import problem, respond
from coatcheck.domain import errors
from coatcheck.domain.errors import CoatcheckError, FieldError
from coatcheck_client.wire import Problem
from tests.api.bench import Bench

REQUEST = UUID(int=5)
EVERY_ERROR = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, CoatcheckError)]


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda one: one.__name__)
def test_every_error_is_a_complete_problem(error: type[CoatcheckError]) -> None:
    response = respond(error(), REQUEST)
    body = Problem.model_validate_json(bytes(response.body))

    assert body.type == f"urn:coatcheck:problem:{error.slug}"
    assert body.status == response.status_code == error.status
    assert body.title
    assert body.detail
    assert body.instance == f"urn:uuid:{REQUEST}"
    assert body.retryable is error.retryable
    assert response.headers["content-type"] == "application/problem+json"
    assert ("retry-after" in response.headers) is error.retryable
    assert ("www-authenticate" in response.headers) is (error.status == 401)


def test_two_errors_of_one_type_are_one_status_and_one_answer() -> None:
    by_slug: dict[str, set[tuple[int, bool]]] = {}
    for error in EVERY_ERROR:
        by_slug.setdefault(error.slug, set()).add((error.status, error.retryable))

    assert {slug: kinds for slug, kinds in by_slug.items() if len(kinds) > 1} == {}


def test_places_are_listed_where_there_are_any() -> None:
    one = errors.InvalidWindow("No.", errors=[FieldError("/window/messages/3", "has no call")])

    assert problem(one, REQUEST)["errors"] == [{"pointer": "/window/messages/3", "detail": "has no call"}]
    assert "errors" not in problem(errors.NotFound(), REQUEST)


@pytest.mark.parametrize("error", [one for one in EVERY_ERROR if one.status != 401], ids=lambda one: one.__name__)
async def test_what_a_route_raises_is_what_the_caller_gets(
    bench: Bench, authorized: dict[str, str], error: type[CoatcheckError]
) -> None:
    @bench.inner.get("/v1/raises")
    async def fail() -> Response:
        raise error

    async with bench.client() as client:
        answer = await client.get("/v1/raises", headers=authorized)

    assert answer.status_code == error.status
    assert answer.json()["type"].endswith(":" + error.slug)


async def test_json_nested_beyond_our_reach_is_malformed(bench: Bench, authorized: dict[str, str]) -> None:
    @bench.inner.get("/v1/deep")
    async def deep() -> Response:
        raise RecursionError

    async with bench.client() as client:
        answer = await client.get("/v1/deep", headers=authorized)

    assert (answer.status_code, answer.json()["type"]) == (400, "urn:coatcheck:problem:malformed")


async def test_what_the_framework_refuses_is_refused_in_our_words(bench: Bench, authorized: dict[str, str]) -> None:
    @bench.inner.get("/v1/teapot")
    async def teapot() -> Response:
        raise HTTPException(418, "secret words", {"X-Secret": "words", "Allow": "GET"})

    @bench.inner.get("/v1/down")
    async def down() -> Response:
        raise HTTPException(502, "secret words")

    async with bench.client() as client:
        refused, failed = [await client.get(f"/v1/{name}", headers=authorized) for name in ("teapot", "down")]
        method = await client.put("/v1/down", headers=authorized)

    assert (refused.status_code, failed.status_code, method.status_code) == (422, 500, 405)
    assert "secret" not in refused.text + failed.text
    assert "X-Secret" not in refused.headers
    assert method.json()["type"].endswith(":method-not-allowed")
    assert method.headers["Allow"] == "GET"
