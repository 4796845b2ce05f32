"""The edge: what happens before a request's body is read, and to what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import UUID

import httpx
import pytest
import structlog
from starlette.types import Message

from coatcheck.api.asked import asked_of
from coatcheck.api.edge import Edge, Limits
from coatcheck.domain.errors import StoreUnavailable
from coatcheck.domain.identifiers import uuid7
from coatcheck.identity.authenticate import Authenticator
from coatcheck.identity.credentials import ApiKey
from coatcheck.memory.compact import Compacted, CompactionCommand
from tests.api.standins import Bench, a_compaction, giving, raising
from tests.identity.directory import KEYS, NOW, MemoryDirectory

CANARY = "canary-" + "91ab" * 4
WINDOW = {"session": "s", "window": {"messages": [{"role": "user", "content": CANARY}]}}


async def exchange(app: Any, messages: list[Message], **scope: object) -> tuple[list[Message], int]:
    """Speaks ASGI by hand: the answer, and how often the app asked for a piece of the body."""
    asked = 0
    sent: list[Message] = []

    async def receive() -> Message:
        nonlocal asked
        asked += 1
        if messages:
            return messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    plain = {"type": "http", "method": "POST", "path": "/v1/compactions", "headers": [], "query_string": b"", "root_path": ""}
    await app({**plain, **scope}, receive, send)
    return sent, asked


def credential(key: ApiKey) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", f"Bearer {key.text}".encode())]


async def test_a_stranger_is_answered_before_a_byte_of_the_body_is_read(bench: Bench) -> None:
    hostile: list[Message] = [{"type": "http.request", "body": b'{"a":1,"a":2', "more_body": True}]

    sent, asked = await exchange(bench.app(), hostile)

    assert sent[0]["status"] == 401
    assert asked == 0
    assert bench.directory.asked == []


async def test_a_stranger_cannot_tell_a_full_service_from_an_idle_one(bench: Bench, client: httpx.AsyncClient) -> None:
    bench.gate.in_flight = 8

    answer = await client.post("/v1/recall", content=b"{")

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
    bench.gate.drain()

    async with bench.client() as client:
        refused = await client.get("/v1/sessions", headers=authorized)
        alive = await client.get("/livez")
        ready = await client.get("/readyz")

    assert refused.status_code == 503
    assert refused.json()["type"].endswith(":draining")
    assert int(refused.headers["Retry-After"]) > 0
    assert alive.status_code == 200
    assert (ready.status_code, ready.json()["status"]) == (503, "draining")
    assert bench.directory.asked == []


async def test_more_than_may_be_in_flight_are_turned_away_until_one_leaves(bench: Bench, authorized: dict[str, str]) -> None:
    release, full = asyncio.Event(), asyncio.Event()

    async def slow(*_args: object) -> Compacted:
        if bench.gate.in_flight == 8:
            full.set()
        await release.wait()
        return Compacted(a_compaction(), created=True)

    bench.use_cases["compact"] = slow
    async with bench.client() as client:
        inside = [asyncio.create_task(client.post("/v1/compactions", json=WINDOW, headers=authorized)) for _ in range(8)]
        await full.wait()
        refused = await client.post("/v1/compactions", json=WINDOW, headers=authorized)
        release.set()
        statuses = [answer.status_code for answer in await asyncio.gather(*inside)]
        admitted = await client.post("/v1/compactions", json=WINDOW, headers=authorized)

    assert refused.status_code == 503
    assert refused.json()["type"].endswith(":overloaded")
    assert statuses == [201] * 8
    assert admitted.status_code == 201
    assert await bench.gate.wait_empty(0.1)


async def test_a_body_is_counted_as_it_comes_whatever_is_announced(bench: Bench, key: ApiKey) -> None:
    chunk: Message = {"type": "http.request", "body": b"x" * 16 * 1024, "more_body": True}

    for announced in ([], [(b"content-length", b"3")]):
        sent, asked = await exchange(bench.app(), [chunk] * 100, headers=[*credential(key), *announced])

        assert sent[0]["status"] == 413
        assert asked == 5


async def test_a_body_announced_too_large_is_not_read(bench: Bench, key: ApiKey) -> None:
    sent, asked = await exchange(bench.app(), [], headers=[*credential(key), (b"content-length", b"65537")])

    assert (sent[0]["status"], asked) == (413, 0)
    assert json.loads(sent[1]["body"])["detail"] == "A body may have 65,536 bytes."


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"", b"0x10", "\u0663".encode(), b"9" * 40])
async def test_a_length_that_is_none_is_malformed(bench: Bench, key: ApiKey, length: bytes) -> None:
    sent, _ = await exchange(bench.app(), [], headers=[*credential(key), (b"content-length", length)])

    assert sent[0]["status"] == 400


async def test_a_body_of_just_the_limit_passes(bench: Bench, authorized: dict[str, str]) -> None:
    bench.use_cases["compact"] = giving(Compacted(a_compaction(), created=True))
    body = json.dumps(WINDOW).encode().ljust(64 * 1024)

    async with bench.client() as client:
        fits = await client.post("/v1/compactions", content=body, headers=authorized)
        over = await client.post("/v1/compactions", content=body + b" ", headers=authorized)

    assert (fits.status_code, over.status_code) == (201, 413)


async def test_a_body_that_stands_still_is_given_up(bench: Bench, key: ApiKey) -> None:
    bench.limits = Limits(1_024, 30, 600, body_pause_s=0.05)

    sent, _ = await exchange(bench.app(), [{"type": "http.request", "body": b"{", "more_body": True}], headers=credential(key))

    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["retryable"] is True
    assert bench.gate.in_flight == 0


async def test_a_client_that_hangs_up_reaches_no_use_case(bench: Bench, key: ApiKey) -> None:
    halves: list[Message] = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    sent, _ = await exchange(bench.app(), halves, headers=credential(key))

    assert sent == []
    assert bench.gate.in_flight == 0


async def test_the_deadline_reaches_the_use_case(bench: Bench, authorized: dict[str, str]) -> None:
    seen: list[float] = []

    async def compact(_context: object, command: CompactionCommand) -> Compacted:
        seen.append(command.deadline_s)
        return Compacted(a_compaction(), created=True)

    bench.use_cases["compact"] = compact
    async with bench.client() as client:
        for headers in ({}, {"Coatcheck-Deadline": "2.5"}, {"coatcheck-deadline": "600"}):
            await client.post("/v1/compactions", json=WINDOW, headers={**authorized, **headers})

    assert seen == [30.0, 2.5, 600.0]


async def test_an_unexpected_failure_is_a_problem_without_its_words(bench: Bench, authorized: dict[str, str]) -> None:
    bench.use_cases["sessions"] = raising(RuntimeError(CANARY))

    with structlog.testing.capture_logs() as logs:
        async with bench.client() as client:
            answer = await client.get("/v1/sessions", headers=authorized)

    assert answer.status_code == 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert CANARY not in answer.text
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["request failed"]


async def test_what_fails_after_the_answer_began_is_left_unfinished(bench: Bench, key: ApiKey) -> None:
    async def lines() -> AsyncIterator[bytes]:
        yield b"{}\n"
        raise RuntimeError(CANARY)

    bench.use_cases["export_session"] = giving(lines())

    sent, _ = await exchange(
        bench.app(),
        [{"type": "http.request"}],
        method="GET",
        path=f"/v1/sessions/{UUID(int=1)}/export",
        headers=credential(key),
    )

    assert [m["status"] for m in sent if m["type"] == "http.response.start"] == [200]
    assert all(m.get("more_body") for m in sent[1:])


async def test_every_answer_names_its_request_and_is_not_kept_by_caches(client: httpx.AsyncClient) -> None:
    answers = [await client.get(path) for path in ("/livez", "/v1/sessions", "/nowhere")]

    ids = {answer.headers["X-Request-Id"] for answer in answers}
    assert len({UUID(one) for one in ids}) == 3
    assert {answer.headers["Cache-Control"] for answer in answers} == {"no-store"}
    assert answers[1].json()["instance"] == f"urn:uuid:{answers[1].headers['X-Request-Id']}"


async def test_the_access_log_names_route_and_caller_and_no_content(bench: Bench, key: ApiKey, authorized: dict[str, str]) -> None:
    bench.use_cases["compact"] = giving(Compacted(a_compaction(CANARY), created=True))

    with structlog.testing.capture_logs() as logs:
        async with bench.client() as client:
            await client.post(f"/v1/compactions?q={CANARY}", json=WINDOW, headers={**authorized, "Idempotency-Key": CANARY})
            await client.get(f"/v1/segments/{CANARY}", headers=authorized)
            await client.request(CANARY, "/v1/sessions")
            await client.get("/livez")

    lines = [{**line} for line in logs if line["event"] == "request" and line["log_level"] == "info"]
    assert CANARY not in str(logs)
    assert [(one["method"], one["route"], one["status"]) for one in lines] == [
        ("POST", "/v1/compactions", 201),
        ("GET", "/v1/segments/{sha256}", 422),
        ("OTHER", "unrouted", 401),
    ]
    assert lines[0]["tenant_id"] == key.tenant_id
    assert lines[0]["principal_id"] == UUID(int=1)
    assert lines[2]["tenant_id"] is None
    assert lines[0]["ms"] >= 0


async def test_requests_are_counted_by_route_template(bench: Bench, authorized: dict[str, str]) -> None:
    bench.use_cases["session"] = raising(StoreUnavailable())

    async with bench.client() as client:
        for number in range(3):
            await client.get(f"/v1/sessions/{UUID(int=number + 1)}", headers=authorized)

    text = bench.metrics.render().decode()
    assert 'coatcheck_requests_total{method="GET",route="/v1/sessions/{session_id}",status="503"} 3.0' in text
    assert "coatcheck_requests_in_flight 0.0" in text


async def test_a_web_socket_is_refused(bench: Bench) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await bench.app()({"type": "websocket", "path": "/v1/sessions", "headers": []}, receive, send)

    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_a_cancelled_request_leaves_the_gate(bench: Bench, authorized: dict[str, str]) -> None:
    inside = asyncio.Event()

    async def forever(*_args: object) -> object:
        inside.set()
        await asyncio.Event().wait()
        raise AssertionError

    bench.use_cases["sessions"] = forever
    async with bench.client() as client:
        task = asyncio.create_task(client.get("/v1/sessions", headers=authorized))
        await inside.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    assert bench.gate.in_flight == 0


async def test_two_callers_at_once_each_keep_their_own_context(bench: Bench) -> None:
    """The context travels in the request's scope, so that nothing of one request is seen by another."""
    keys = [bench.directory.add(tenant=tenant, principal=tenant + 100) for tenant in (1, 2)]
    seen: list[tuple[UUID, UUID]] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        await asyncio.sleep(0.001)
        context = asked_of(scope).context
        assert context is not None
        seen.append((context.tenant_id, context.principal_id))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    edge = Edge(
        app,
        authenticator=Authenticator(bench.directory, KEYS, lambda: NOW),
        gate=bench.gate,
        limits=bench.limits,
        metrics=bench.metrics,
        new_id=uuid7,
    )
    async with bench.client(edge) as client:
        await asyncio.gather(*(client.get("/v1/sessions", headers={"Authorization": f"Bearer {key.text}"}) for key in keys * 4))

    assert set(seen) == {(UUID(int=1), UUID(int=101)), (UUID(int=2), UUID(int=102))}
    assert len(seen) == 8
