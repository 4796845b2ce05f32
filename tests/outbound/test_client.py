"""The client against a real socket: it goes to the address that was judged, follows nothing, and gives up in time."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import pytest

from coatcheck.domain.errors import OutboundFailed, OutboundRefused
from coatcheck.outbound import client as client_module
from coatcheck.outbound.client import Outbound, resolve
from coatcheck.outbound.guard import Allowance
from coatcheck.outbound.network import BITE_BYTES, guarded
from tests.outbound.network import WebServer, certificate, web_server

LOCAL = Allowance(loopback=True)


def resolving(*answers: list[str]) -> Outbound:
    """A client whose names resolve to these, one answer after the other."""
    left = list(answers)

    async def resolver(host: str, port: int) -> list[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return Outbound(LOCAL, resolver=resolver)


async def test_a_body_is_fetched(server: WebServer) -> None:
    assert await Outbound(LOCAL).get(server.url) == b'{"keys": []}'
    (asked,) = server.requests
    assert asked.startswith(b"GET /jwks HTTP/1.1\r\n")
    assert b"cookie" not in asked.lower()
    assert b"authorization" not in asked.lower()


async def test_T30_a_name_that_resolves_inside_is_not_connected_to(server: WebServer) -> None:
    shut = Outbound(Allowance(), resolver=lambda host, port: _give(["127.0.0.1"]))

    with pytest.raises(OutboundRefused):
        await shut.get(f"https://127.0.0.1.nip.example:{server.port}/jwks")
    assert server.requests == []


async def test_T30_of_a_name_with_several_addresses_one_inside_is_enough(server: WebServer) -> None:
    for addresses in (["127.0.0.1", "169.254.169.254"], ["169.254.169.254", "127.0.0.1"], ["127.0.0.1", "::ffff:10.0.0.1"]):
        with pytest.raises(OutboundRefused):
            await resolving(addresses).get(f"http://mixed.example:{server.port}/jwks")
    assert server.requests == []


async def test_T30_a_name_is_resolved_once_and_connected_to_where_it_was_judged(server: WebServer) -> None:
    """The second answer would be refused: were it asked for, this would fail; were it used, something inside would be reached."""
    client = resolving(["127.0.0.1"], ["169.254.169.254"])

    assert await client.get(f"http://rebinding.example:{server.port}/jwks") == b'{"keys": []}'
    with pytest.raises(OutboundRefused):
        await client.get(f"http://rebinding.example:{server.port}/jwks")
    assert b"Host: rebinding.example" in server.requests[0]


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent", "204 None", "404 Not", "500 Oh"])
async def test_T30_a_redirect_or_any_other_answer_is_not_followed(server: WebServer, status: str) -> None:
    server.says(b"", status, Location=f"http://127.0.0.1:{server.port}/other")

    with pytest.raises(OutboundFailed):
        await Outbound(LOCAL).get(server.url)
    assert len(server.requests) == 1


async def test_T30_no_proxy_of_the_environment_is_asked(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://10.0.0.1:3128")

    assert await Outbound(LOCAL).get(server.url)


async def test_a_body_that_is_too_long_encoded_or_late_is_given_up(server: WebServer) -> None:
    client = Outbound(LOCAL)

    server.says(b"x" * 2_000)
    with pytest.raises(OutboundFailed):
        await client.get(server.url, max_bytes=1_000)
    server.says(b"x", Content_Encoding="gzip")
    with pytest.raises(OutboundFailed):
        await client.get(server.url)
    server.pause_s = 5
    started = time.monotonic()
    with pytest.raises(OutboundFailed):
        await client.get(server.url, timeout_s=0.2)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "around",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 1_000 + b"0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 300 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ],
    ids=["a byte a chunk", "interim answers"],
)
async def test_T34_a_short_body_in_endless_framing_is_given_up(
    server: WebServer, around: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading it takes the time of everybody whom this process serves."""
    server.answer = around

    assert len(await Outbound(LOCAL).get(server.url, max_bytes=1_000)) in (2, 1_000)
    monkeypatch.setattr(client_module, "FRAMING_BYTES", 2_500)
    with pytest.raises(OutboundFailed):
        await Outbound(LOCAL).get(server.url, max_bytes=1_000)


async def test_T34_an_answer_comes_in_bites_however_much_of_it_is_there(server: WebServer) -> None:
    """Between two of them others have their turn; a bite of one-byte chunks is what they wait for."""
    server.says(b"x" * 64_000)
    stream = await guarded(LOCAL, resolve, False, 100_000).connect_tcp("127.0.0.1", server.port)
    await stream.write(b"GET / HTTP/1.1\r\n\r\n")

    bites = []
    while some := await stream.read(64 * 1024):
        bites.append(len(some))
    await stream.aclose()

    assert sum(bites) == len(server.answer)
    assert max(bites) <= BITE_BYTES


async def test_T34_endless_framing_is_given_up_behind_tls_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = certificate(tmp_path)
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.load_cert_chain(file)
    async with web_server(secure) as server:
        server.answer = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 300 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        client = Outbound(LOCAL, verify=ssl.create_default_context(cafile=str(file)))
        url = server.url.replace("http://", "https://")

        assert await client.get(url, max_bytes=1_000) == b"{}"
        monkeypatch.setattr(client_module, "FRAMING_BYTES", 2_500)
        with pytest.raises(OutboundFailed, match="around its answer"):
            await client.get(url, max_bytes=1_000)


async def test_what_is_no_server_or_no_https_fails_without_its_words(server: WebServer) -> None:
    client = resolving(["127.0.0.1"])

    server.answer = b"SSH-2.0-OpenSSH a secret banner\r\n"
    for url in (server.url, f"https://plain.example:{server.port}/jwks", "http://127.0.0.1:1/jwks"):
        with pytest.raises(OutboundFailed) as failure:
            await client.get(url, timeout_s=0.6)
        assert "banner" not in failure.value.detail
        assert failure.value.__cause__ is None


async def test_a_name_without_an_address_fails() -> None:
    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(OutboundFailed):
        await Outbound(LOCAL, resolver=nowhere).get("https://nowhere.example/")
    with pytest.raises(OutboundFailed):
        await Outbound(LOCAL, resolver=lambda host, port: _give([])).get("https://nowhere.example/")


async def test_a_request_that_goes_away_leaves_no_connection(server: WebServer) -> None:
    server.pause_s = 5
    task = asyncio.create_task(Outbound(LOCAL).get(server.url))
    await server.asked.wait()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def _give(addresses: list[str]) -> list[str]:
    return addresses
