"""The edge: what happens before a request's body is read, and to what comes back."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import Request, Response
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from coatcheck.api.asked import asked_of
from coatcheck.api.edge import HELD_FROM_BYTES, Limits
from coatcheck.api.responses import Ndjson
from coatcheck.domain.errors import InvalidRequest, StoreUnavailable
from coatcheck.identity.credentials import ApiKey
from tests.api.bench import Bench
from tests.identity.directory import MemoryDirectory

CANARY = "canary-" + "91ab" * 4


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """With one route that reads its body whole."""

    @bench.inner.post("/v1/things")
    async def make(request: Request) -> Response:
        return Response(str(len(await request.body())), 201)

    return bench


PLAIN = {"type": "http", "method": "POST", "path": "/v1/things", "headers": [], "query_string": b"", "root_path": ""}


async def exchange(app: Any, messages: list[Message], *, every_s: float = 0, **scope: object) -> tuple[list[Message], int]:
    """Speaks ASGI by hand: the answer, and how often the app asked for a piece of the body, of which one comes ``every_s``."""
    asked = 0
    sent: list[Message] = []

    async def receive() -> Message:
        nonlocal asked
        asked += 1
        await asyncio.sleep(every_s)
        if messages:
            return messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    await app({**PLAIN, **scope}, receive, send)
    return sent, asked


def credential(key: ApiKey) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", f"Bearer {key.text}".encode())]


def logged(log_text: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_text.getvalue().splitlines()]


async def test_a_stranger_is_answered_before_a_byte_of_the_body_is_read(bench: Bench) -> None:
    hostile: list[Message] = [{"type": "http.request", "body": b'{"a":1,"a":2', "more_body": True}]

    sent, asked = await exchange(bench.edge(), hostile)

    assert sent[0]["status"] == 401
    assert asked == 0
    assert bench.directory.asked == []


async def test_a_stranger_cannot_tell_a_full_service_from_an_idle_one(bench: Bench, client: httpx.AsyncClient) -> None:
    bench.gate.in_flight = 8

    answer = await client.post("/v1/things", content=b"{")

    assert answer.status_code == 401


async def test_two_credentials_are_none(client: httpx.AsyncClient, key: ApiKey) -> None:
    header = f"Bearer {key.text}"

    answer = await client.get("/v1/sessions", headers=[("Authorization", header), ("Authorization", header)])

    assert answer.status_code == 401


async def test_a_directory_that_is_down_is_no_refusal(bench: Bench, authorized: dict[str, str]) -> None:
    class Down(MemoryDirectory):
        async def find_key(self, tenant_id: UUID, key_id: UUID) -> None:
            raise StoreUnavailable

    bench.directory = Down()

    async with bench.client() as client:
        answer = await client.get("/v1/sessions", headers=authorized)

    assert answer.status_code == 503
    assert answer.json()["retryable"] is True
    assert int(answer.headers["Retry-After"]) > 0


async def test_a_draining_service_lets_nobody_in_but_the_probes(bench: Bench, authorized: dict[str, str]) -> None:
    @bench.inner.get("/livez")
    async def livez() -> Response:
        return Response()

    bench.gate.drain()

    async with bench.client() as client:
        refused = await client.post("/v1/things", headers=authorized)
        alive = await client.get("/livez")

    assert refused.status_code == 503
    assert refused.json()["type"].endswith(":draining")
    assert int(refused.headers["Retry-After"]) > 0
    assert alive.status_code == 200
    assert bench.directory.asked == []


async def test_more_than_may_be_in_flight_are_turned_away_until_one_leaves(bench: Bench, authorized: dict[str, str]) -> None:
    """Of eight, one is left for another tenant."""
    release, full = asyncio.Event(), asyncio.Event()

    @bench.inner.get("/v1/slow")
    async def slow() -> Response:
        if bench.gate.in_flight == 7:
            full.set()
        await release.wait()
        return Response()

    async with bench.client() as client:
        inside = [asyncio.create_task(client.get("/v1/slow", headers=authorized)) for _ in range(7)]
        await full.wait()
        refused = await asyncio.wait_for(client.get("/v1/slow", headers=authorized), 5)
        release.set()
        statuses = [answer.status_code for answer in await asyncio.gather(*inside)]
        admitted = await client.get("/v1/slow", headers=authorized)

    assert refused.status_code == 503
    assert refused.json()["type"].endswith(":overloaded")
    assert statuses == [200] * 7
    assert admitted.status_code == 200
    assert await bench.gate.wait_empty(0.1)


async def test_a_body_is_counted_as_it_comes_whatever_is_announced(bench: Bench, key: ApiKey) -> None:
    chunk: Message = {"type": "http.request", "body": b"x" * 16 * 1024, "more_body": True}

    for announced in ([], [(b"content-length", b"3")]):
        sent, asked = await exchange(bench.edge(), [chunk] * 100, headers=[*credential(key), *announced])

        assert sent[0]["status"] == 413
        assert asked == 5


async def test_a_body_announced_too_large_is_not_read(bench: Bench, key: ApiKey) -> None:
    sent, asked = await exchange(bench.edge(), [], headers=[*credential(key), (b"content-length", b"65537")])

    assert (sent[0]["status"], asked) == (413, 0)
    assert json.loads(sent[1]["body"])["detail"] == "The body has 65,537 bytes, and 65,536 are taken (COATCHECK_MAX_BODY_BYTES)."


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"", b"0x10", "\u0663".encode(), b"9" * 40])
async def test_a_length_that_is_none_is_malformed(bench: Bench, key: ApiKey, length: bytes) -> None:
    sent, _ = await exchange(bench.edge(), [], headers=[*credential(key), (b"content-length", length)])

    assert sent[0]["status"] == 400


async def test_a_body_of_just_the_limit_passes(client: httpx.AsyncClient, authorized: dict[str, str]) -> None:
    fits = await client.post("/v1/things", content=b"x" * 65_536, headers=authorized)
    over = await client.post("/v1/things", content=b"x" * 65_537, headers=authorized)

    assert (fits.status_code, fits.text) == (201, "65536")
    assert over.status_code == 413


async def test_a_streamed_body_may_be_longer_and_comes_piece_by_piece(bench: Bench, authorized: dict[str, str]) -> None:
    sizes: list[int] = []

    @bench.inner.post("/v1/import")
    async def stream(request: Request) -> Response:
        async for chunk in request.stream():
            sizes.append(len(chunk))
        return Response()

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 30_000

    async with bench.client() as client:
        answer = await client.post("/v1/import", content=chunks(), headers=authorized)
        stranger = await client.post("/v1/import", content=b"{}")

    assert answer.status_code == 200
    assert sum(sizes) == 300_000 > bench.limits.max_body_bytes
    assert max(sizes) == 30_000
    assert stranger.status_code == 401


async def test_a_body_that_stands_still_is_given_up(bench: Bench, key: ApiKey) -> None:
    bench.limits = Limits(1_024, 30, 600, body_pause_s=0.05)

    sent, _ = await exchange(bench.edge(), [{"type": "http.request", "body": b"{", "more_body": True}], headers=credential(key))

    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["retryable"] is True
    assert bench.gate.in_flight == 0


async def test_T34_a_byte_now_and_then_keeps_no_request_alive(bench: Bench, key: ApiKey) -> None:
    bench.limits = Limits(1_024, 30, 600, body_pause_s=0.2)
    trickle: list[Message] = [{"type": "http.request", "body": b" ", "more_body": True} for _ in range(100)]

    sent, asked = await exchange(bench.edge(), trickle, every_s=0.05, headers=credential(key))

    assert sent[0]["status"] == 408
    assert asked < 100
    assert bench.gate.in_flight == 0


async def test_a_steady_body_may_take_longer_than_a_pause(bench: Bench, key: ApiKey) -> None:
    bench.limits = Limits(64 * 1_024, 30, 600, body_pause_s=0.4, body_bytes_per_s=8_192)
    pieces: list[Message] = [{"type": "http.request", "body": b" " * 2_048, "more_body": left > 0} for left in reversed(range(10))]

    sent, _ = await exchange(bench.edge(), pieces, every_s=0.1, headers=credential(key))

    assert (sent[0]["status"], sent[1]["body"]) == (201, b"20480")


async def test_a_large_answer_is_in_flight_until_the_server_has_passed_it_on(bench: Bench, key: ApiKey) -> None:
    whole = b"x" * HELD_FROM_BYTES
    in_flight: list[int] = []

    @bench.inner.post("/v1/large")
    async def large() -> Response:
        return Response(whole)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)
        in_flight.append(bench.gate.in_flight)

    await bench.edge()({**PLAIN, "path": "/v1/large", "headers": credential(key)}, receive, send)

    assert [(m.get("body"), m.get("more_body")) for m in sent[1:]] == [(whole, True), (b"", False)]
    assert in_flight == [1, 1, 1]
    assert bench.gate.in_flight == 0


async def test_a_client_that_hangs_up_reaches_no_use_case(bench: Bench, key: ApiKey) -> None:
    halves: list[Message] = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    sent, _ = await exchange(bench.edge(), halves, headers=credential(key))

    assert sent == []
    assert bench.gate.in_flight == 0


async def test_the_deadline_reaches_the_route(bench: Bench, authorized: dict[str, str]) -> None:
    @bench.inner.get("/v1/deadline")
    async def deadline(request: Request) -> float:
        return asked_of(request.scope).deadline_s

    async with bench.client() as client:
        seen = [
            (await client.get("/v1/deadline", headers={**authorized, **headers})).json()
            for headers in ({}, {"Coatcheck-Deadline": "2.5"}, {"coatcheck-deadline": "600"})
        ]
        refused = await client.get("/v1/deadline", headers={**authorized, "Coatcheck-Deadline": "601"})

    assert seen == [30.0, 2.5, 600.0]
    assert refused.status_code == 422


@pytest.mark.parametrize("cause", [None, InvalidRequest(CANARY)], ids=["of its own", "of what a caller may do wrong"])
async def test_an_unexpected_failure_is_a_problem_and_a_log_line_without_its_words(
    bench: Bench, authorized: dict[str, str], log_text: io.StringIO, cause: Exception | None
) -> None:
    @bench.inner.get("/v1/broken")
    async def broken() -> Response:
        raise RuntimeError(CANARY) from cause

    async with bench.client() as client:
        answer = await client.get("/v1/broken", headers=authorized)

    assert answer.status_code == 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert CANARY not in answer.text + log_text.getvalue()
    failures = [line for line in logged(log_text) if line["event"] == "request failed"]
    assert [(line["exception"][0], line["level"]) for line in failures] == [("builtins.RuntimeError", "error")]
    assert failures[0]["request_id"] == answer.headers["X-Request-Id"]


async def test_what_fails_after_the_answer_began_is_left_unfinished(bench: Bench, key: ApiKey) -> None:
    @bench.inner.post("/v1/lines")
    async def stream() -> Response:
        async def lines() -> AsyncIterator[bytes]:
            yield b"{}\n"
            raise RuntimeError(CANARY)

        return await Ndjson.begin(lines())

    sent, _ = await exchange(bench.edge(), [{"type": "http.request"}], path="/v1/lines", headers=credential(key))

    assert [m["status"] for m in sent if m["type"] == "http.response.start"] == [200]
    assert all(m.get("more_body") for m in sent[1:])


async def test_every_answer_names_its_request_and_is_not_kept_by_caches(
    client: httpx.AsyncClient, authorized: dict[str, str]
) -> None:
    answers = [
        await client.post("/v1/things"),
        await client.post("/v1/things", headers=authorized),
        await client.get("/nowhere", headers=authorized),
    ]

    ids = [answer.headers["X-Request-Id"] for answer in answers]
    assert len({UUID(one) for one in ids}) == 3
    assert {answer.headers["Cache-Control"] for answer in answers} == {"no-store"}
    assert [answers[0].json()["instance"], answers[2].json()["instance"]] == [f"urn:uuid:{ids[0]}", f"urn:uuid:{ids[2]}"]


async def test_the_access_log_names_route_and_caller_and_no_content(
    bench: Bench, key: ApiKey, authorized: dict[str, str], log_text: io.StringIO
) -> None:
    @bench.inner.get("/v1/things/{thing}")
    async def look(thing: UUID) -> Response:
        return Response(str(thing))

    async with bench.client() as client:
        headers = {**authorized, "Idempotency-Key": CANARY}
        await client.post(f"/v1/things?q={CANARY}", content=CANARY, headers=headers)
        await client.get(f"/v1/things/{CANARY}", headers=authorized)
        await client.request(CANARY, f"/{CANARY}")
        await client.get("/livez")

    lines = [line for line in logged(log_text) if line["event"] == "request"]
    assert CANARY not in log_text.getvalue()
    assert [(one["method"], one["route"], one["status"]) for one in lines] == [
        ("POST", "/v1/things", 201),
        ("GET", "/v1/things/{thing}", 422),
        ("OTHER", "unrouted", 401),
    ]
    assert lines[0]["tenant_id"] == str(key.tenant_id)
    assert lines[0]["principal_id"] == str(UUID(int=1))
    assert lines[2]["tenant_id"] is None
    assert lines[0]["ms"] >= 0


async def test_what_a_library_answers_is_logged_by_its_number_and_what_is_mounted_by_its_place(bench: Bench, key: ApiKey) -> None:
    async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    with capture_logs() as seen:
        for headers in (credential(key), []):
            await exchange(bench.edge(mounted), [{"type": "http.request", "body": b""}], path="/mcp", headers=headers)

    lines = [line for line in seen if line["event"] == "request"]
    assert [(line["route"], repr(line["status"])) for line in lines] == [("/mcp", "200"), ("/mcp", "401")]


async def test_requests_are_counted_by_route_template(bench: Bench, authorized: dict[str, str]) -> None:
    @bench.inner.get("/v1/things/{thing}")
    async def look(thing: str) -> Response:
        raise StoreUnavailable

    async with bench.client() as client:
        for number in range(3):
            await client.get(f"/v1/things/{number}", headers=authorized)

    text = bench.metrics.render().decode()
    assert 'coatcheck_requests_total{method="GET",route="/v1/things/{thing}",status="503"} 3.0' in text
    assert "coatcheck_requests_in_flight 0.0" in text


async def test_a_web_socket_is_refused(bench: Bench) -> None:
    sent, _ = await exchange(bench.edge(), [{"type": "websocket.connect"}], type="websocket")

    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_a_cancelled_request_leaves_the_gate(bench: Bench, authorized: dict[str, str]) -> None:
    inside = asyncio.Event()

    @bench.inner.get("/v1/forever")
    async def forever() -> Response:
        inside.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with bench.client() as client:
        task = asyncio.create_task(client.get("/v1/forever", headers=authorized))
        await inside.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    assert bench.gate.in_flight == 0


async def test_two_callers_at_once_each_keep_their_own_context(bench: Bench) -> None:
    """The context travels in the request's scope, so that nothing of one request is seen by another."""
    keys = [bench.directory.add(tenant=tenant, principal=tenant + 100) for tenant in (1, 2)]

    @bench.inner.get("/v1/whoami")
    async def whoami(request: Request) -> list[str]:
        await asyncio.sleep(0.001)
        context = asked_of(request.scope).context
        assert context is not None
        return [str(context.tenant_id), str(context.principal_id)]

    async with bench.client() as client:
        answers = await asyncio.gather(
            *(client.get("/v1/whoami", headers={"Authorization": f"Bearer {key.text}"}) for key in keys * 4)
        )

    expected = [[str(UUID(int=tenant)), str(UUID(int=tenant + 100))] for tenant in (1, 2)] * 4
    assert [answer.json() for answer in answers] == expected
