"""Names that resolve differently from one moment to the next, below all that the client is made of: the system's resolver."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from coatcheck.domain.errors import OutboundFailed, OutboundRefused
from coatcheck.outbound.client import Outbound
from coatcheck.outbound.guard import Allowance
from tests.outbound.network import WebServer

HOST = "rebinding.example"
LOCAL = Allowance(loopback=True)


@dataclass(slots=True)
class Resolver:
    """Stands in the place of the system's: gives a name's answers one after the other, and counts who asks."""

    answers: list[list[str]]
    asked: list[str] = field(default_factory=list)

    def getaddrinfo(self, host: Any, port: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, ...]]:
        name = host.decode() if isinstance(host, bytes) else host
        self.asked.append(name)
        found = (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]) if name == HOST else [name]
        return [(socket.AF_UNSPEC, socket.SOCK_STREAM, 6, "", (one, port, 0, 0)[: 4 if ":" in one else 2]) for one in found]


@contextmanager
def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> Iterator[Resolver]:
    resolver = Resolver(list(answers))
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", resolver.getaddrinfo)
        yield resolver


async def test_T30_nothing_below_the_client_resolves_a_name_again(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with resolving(monkeypatch, ["127.0.0.1"], ["169.254.169.254"]) as resolver:
        body = await Outbound(LOCAL).get(f"http://{HOST}:{server.port}/jwks")

    assert body == b'{"keys": []}'
    assert resolver.asked.count(HOST) == 1
    assert len(server.requests) == 1


async def test_T30_a_second_request_is_judged_by_its_own_answer(server: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Outbound(LOCAL)
    url = f"http://{HOST}:{server.port}/jwks"
    with resolving(monkeypatch, ["127.0.0.1"], ["10.0.0.7"]) as resolver:
        await client.get(url)
        with pytest.raises(OutboundRefused):
            await client.post_json(url, b"{}", bearer="not for the second address")

    assert resolver.asked.count(HOST) == 2
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["0.0.0.0"],
        ["fe80::1%lo"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["93.184.216.34", "127.0.0.1"],
        ["100.100.100.200"],
        ["224.0.0.1"],
        ["fd00:ec2::254"],
    ],
)
async def test_T30_a_name_that_was_good_when_it_was_named_is_refused_once_it_leads_inside(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, answer: list[str]
) -> None:
    client = Outbound(Allowance())
    client.check(f"https://{HOST}/jwks")

    with resolving(monkeypatch, answer) as resolver, pytest.raises(OutboundRefused):
        await client.get(f"https://{HOST}:{server.port}/jwks")

    assert resolver.asked == [HOST]
    assert server.requests == []


async def test_what_the_resolver_gives_that_is_no_address_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in (["no address"], ["127.0.0.1 "], ["0x7f.1"], []):
        with resolving(monkeypatch, answer), pytest.raises(OutboundFailed):
            await Outbound(LOCAL).get(f"http://{HOST}:1/jwks")
