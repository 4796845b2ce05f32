"""The edge behind the real server, byte by byte: what a framing trick or a slow client meets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import uvicorn
from fastapi import Request, Response

from coatcheck.api.responses import Ndjson
from coatcheck.app.connections import PatientProtocol
from coatcheck.identity.credentials import ApiKey
from tests.api.bench import Bench

ANSWER_LIMIT_S = 30
"""For a server that hangs; a machine that is busy takes its time."""


LARGE = 64 * 1024 * 1024
"""More than the sockets between two processes take."""


class Hasty(PatientProtocol):
    head_s = 0.5
    reading_pause_s = 0.5


@pytest.fixture
async def port(bench: Bench) -> AsyncIterator[int]:
    """The bench behind the real server."""
    bench.limits = replace(bench.limits, body_pause_s=3)

    @bench.inner.post("/v1/things")
    async def make(request: Request) -> Response:
        return Response(str(len(await request.body())), 201)

    @bench.inner.post("/v1/large")
    async def large() -> Response:
        return Response(b"x" * LARGE)

    config = uvicorn.Config(
        bench.edge(), port=0, http=Hasty, log_config=None, lifespan="off", access_log=False, ws="none", timeout_keep_alive=30
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - the server offers no event
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


async def speak(port: int, *pieces: bytes, until: bytes | None = None) -> bytes:
    """Sends the pieces, then reads until the server closes, or has said what is waited for."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            while not (until and until in answer) and (chunk := await reader.read(65_536)):
                answer += chunk
    except ConnectionError:
        pass
    finally:
        await close(writer)
    return answer


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


def head(*lines: str, key: ApiKey | None = None) -> bytes:
    credential = [f"Authorization: Bearer {key.text}"] if key else []
    return "\r\n".join(["POST /v1/things HTTP/1.1", "Host: x", "Connection: close", *credential, *lines, "", ""]).encode()


async def test_a_stranger_who_asks_before_sending_is_told_no_and_not_to_go_on(port: int) -> None:
    answer = await speak(port, head("Expect: 100-continue", "Content-Length: 1000"))

    assert answer.startswith(b"HTTP/1.1 401")


async def test_a_caller_who_asks_before_sending_is_told_to_go_on(port: int, key: ApiKey) -> None:
    answer = await speak(port, head("Expect: 100-continue", "Content-Length: 1000", key=key), until=b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 100")


async def test_a_chunked_body_beyond_the_limit_is_refused_while_it_comes(port: int, key: ApiKey) -> None:
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"

    answer = await speak(port, head("Transfer-Encoding: chunked", key=key), *[chunk] * 5)

    assert answer.startswith(b"HTTP/1.1 413")


async def test_a_chunked_body_within_the_limit_is_read_whole(port: int, key: ApiKey) -> None:
    answer = await speak(port, head("Transfer-Encoding: chunked", key=key), b"2\r\n{}\r\n0\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 201")
    assert answer.endswith(b"\r\n\r\n2")


async def test_a_body_longer_than_announced_is_no_part_of_the_request(port: int, key: ApiKey) -> None:
    answer = await speak(port, head("Content-Length: 2", key=key), b"{}" + b"x" * 100)

    assert answer.startswith(b"HTTP/1.1 201")
    assert answer.count(b"HTTP/1.1 2") == 1


@pytest.mark.parametrize("proven", [True, False])
async def test_T14_a_body_with_two_ends_is_refused_and_nothing_behind_it_is_taken_for_a_request(
    port: int, key: ApiKey, proven: bool
) -> None:
    """Of one who shares a proxy's connection: the second request would be answered as somebody else's."""
    first = head("Content-Length: 4", "Transfer-Encoding: chunked", key=key if proven else None)
    smuggled = head("Content-Length: 0", key=key)

    answer = await speak(port, first.replace(b"Connection: close", b"Connection: keep-alive") + b"0\r\n\r\n" + smuggled)

    assert answer.startswith(b"HTTP/1.1 400")
    assert b"connection: close" in answer.lower()
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_body_that_never_comes_is_given_up(port: int, key: ApiKey, bench: Bench) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head("Content-Length: 10", key=key) + b"{")

    answer = await asyncio.wait_for(reader.read(65_536), ANSWER_LIMIT_S)
    await close(writer)

    assert answer.startswith(b"HTTP/1.1 408")
    assert bench.gate.in_flight == 0


@pytest.fixture
def endless(bench: Bench) -> asyncio.Event:
    """A stream that never ends; the event says that it was closed."""
    closed = asyncio.Event()

    @bench.inner.get("/v1/endless")
    async def stream() -> Response:
        return await Ndjson.begin(lines())

    async def lines() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"{}\n"
                await asyncio.sleep(0)
        finally:
            closed.set()

    return closed


async def test_a_reader_who_hangs_up_ends_the_stream(endless: asyncio.Event, port: int, key: ApiKey, bench: Bench) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /v1/endless HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key.text}\r\n\r\n".encode())
    await reader.readuntil(b"{}\n")
    await close(writer)

    await asyncio.wait_for(endless.wait(), ANSWER_LIMIT_S)

    assert await bench.gate.wait_empty(1)


@pytest.mark.parametrize("beginning", [b"", b"POST /v1/thi", b"POST /v1/things HTTP/1.1\r\nHost: x\r\nX-"])
async def test_a_connection_whose_request_does_not_come_is_closed(port: int, beginning: bytes) -> None:
    answer = await speak(port, beginning)

    assert answer == b""


async def test_a_head_that_comes_byte_by_byte_is_not_waited_for(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async with asyncio.timeout(ANSWER_LIMIT_S):
        with contextlib.suppress(ConnectionError):
            writer.write(b"POST /v1/things HTTP/1.1\r\nX-Long: ")
            ended = asyncio.ensure_future(reader.read())
            while not ended.done():
                writer.write(b"a")
                await asyncio.sleep(0.05)
            await ended
        await close(writer)


async def test_a_second_request_that_is_begun_and_not_finished_is_not_waited_for(port: int, key: ApiKey) -> None:
    first = head("Content-Length: 2", key=key).replace(b"Connection: close", b"Connection: keep-alive")

    answer = await speak(port, first + b"ok", b"POST /v1/things HTTP/1.1\r\nX-")

    assert answer.startswith(b"HTTP/1.1 201")


async def test_a_body_may_take_longer_than_a_head(port: int, key: ApiKey) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head("Content-Length: 2", key=key) + b"o")
    await asyncio.sleep(1)
    writer.write(b"k")

    answer = await asyncio.wait_for(reader.read(20), ANSWER_LIMIT_S)

    await close(writer)
    assert answer.startswith(b"HTTP/1.1 201")


async def test_T34_an_answer_that_nobody_reads_is_thrown_away(port: int, bench: Bench, key: ApiKey) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
    writer.write(head("Content-Length: 0", key=key).replace(b"/v1/things", b"/v1/large"))
    await reader.read(10)
    began = bench.gate.in_flight

    async with asyncio.timeout(ANSWER_LIMIT_S):
        while bench.gate.in_flight:  # noqa: ASYNC110 - the gate offers no event
            await asyncio.sleep(0.05)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(LARGE)
    await close(writer)

    assert began == 1
