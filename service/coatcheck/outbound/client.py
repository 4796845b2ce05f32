"""Asks an address that an operator has named for a small document. No redirect is followed, no proxy asked, no cookie kept."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.domain.errors import OutboundFailed, OutboundRefused
from coatcheck.outbound.guard import Allowance, Target, judge, target_of

if TYPE_CHECKING:
    import httpcore

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""A host's addresses, in the order in which to try them."""

MAX_BODY_BYTES = 256 * 1024
TIMEOUT_S = 5.0
MAX_ADDRESSES = 4


async def resolve(host: str, port: int) -> list[str]:
    """As the system resolves."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


@dataclass(frozen=True, slots=True)
class _Request:
    """What is asked, and how long and how large its answer may be."""

    method: str
    max_bytes: int
    timeout_s: float
    document: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()


class Outbound:
    """The only client of the service. ``verify`` is for tests with a certificate of their own."""

    def __init__(self, allowance: Allowance, *, resolver: Resolver = resolve, verify: ssl.SSLContext | None = None) -> None:
        self._allowance = allowance
        self._resolver = resolver
        self._verify = verify

    def check(self, url: str) -> None:
        """Raises OutboundRefused for a URL that could never be fetched; the addresses of its host are judged when it is."""
        target_of(url, self._allowance)

    async def get(self, url: str, *, max_bytes: int = MAX_BODY_BYTES, timeout_s: float = TIMEOUT_S) -> bytes:
        """The body of a 200. Raises OutboundRefused for where it may not go, OutboundFailed for everything else."""
        return await self._ask(url, _Request("GET", max_bytes, timeout_s))

    async def post_json(
        self, url: str, document: bytes, *, bearer: str | None = None, max_bytes: int = MAX_BODY_BYTES, timeout_s: float = TIMEOUT_S
    ) -> bytes:
        """As ``get``, for a question that is itself a JSON document. ``bearer`` goes to this address and nowhere else."""
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(document)))]
        if bearer is not None:
            headers.append(("Authorization", f"Bearer {bearer}"))
        return await self._ask(url, _Request("POST", max_bytes, timeout_s, document, tuple(headers)))

    async def _ask(self, url: str, request: _Request) -> bytes:
        target = target_of(url, self._allowance)
        try:
            async with asyncio.timeout(request.timeout_s):
                return await self._exchange(target, request)
        except TimeoutError:
            raise OutboundFailed("The address did not answer in time.") from None
        except (OSError, ValueError) as error:
            raise OutboundFailed(f"The address could not be fetched from ({type(error).__name__}).") from None

    async def _exchange(self, target: Target, request: _Request) -> bytes:
        import httpcore

        backend = _guarded_backend(self._allowance, self._resolver, target.secure)
        context = self._verify or await asyncio.to_thread(ssl.create_default_context)
        headers = [("Accept", "application/json"), ("Accept-Encoding", "identity"), ("User-Agent", "coatcheck")]
        # Shorter than the whole: a handshake that is cancelled from outside leaves its socket to the garbage collector.
        limit_s = request.timeout_s
        times = {"connect": limit_s / 3, "read": limit_s, "write": limit_s, "pool": limit_s}
        try:
            async with (
                httpcore.AsyncConnectionPool(ssl_context=context, network_backend=backend, max_connections=1) as pool,
                pool.stream(
                    request.method,
                    target.url,
                    headers=[*headers, *request.headers],
                    content=request.document,
                    extensions={"timeout": times},
                ) as response,
            ):
                if response.status != 200:
                    raise OutboundFailed(f"The address answered {response.status}.")
                encodings = [value.strip().lower() for name, value in response.headers if name.lower() == b"content-encoding"]
                if any(encoding != b"identity" for encoding in encodings):
                    raise OutboundFailed("The address answered in an encoding that was not asked for.")
                return await _read(response.aiter_stream(), request.max_bytes)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, httpcore.UnsupportedProtocol) as error:
            raise OutboundFailed(f"The address could not be fetched from ({type(error).__name__}).") from None


async def _read(chunks: AsyncIterable[bytes], max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            raise OutboundFailed(f"The address answered with more than {max_bytes:,} bytes.")
    return bytes(body)


def _guarded_backend(allowance: Allowance, resolver: Resolver, secure: bool) -> httpcore.AsyncNetworkBackend:
    """A network where a name leads to addresses that were judged, and to nothing else. The library is loaded by the first fetch."""
    import httpcore

    class Guarded(httpcore.AsyncNetworkBackend):
        def __init__(self) -> None:
            self._plain = httpcore.AnyIOBackend()

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,  # noqa: ASYNC109
            local_address: str | None = None,
            socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
        ) -> httpcore.AsyncNetworkStream:
            addresses = [ipaddress.ip_address(text) for text in await resolver(host, port)]
            # All of them: of a name with one good address and one inside, the second is what was meant.
            for address in addresses:
                judge(address, allowance, secure=secure)
            failure: Exception = OutboundFailed("The host has no address.")
            for address in addresses[:MAX_ADDRESSES]:
                try:
                    return await self._plain.connect_tcp(str(address), port, timeout, local_address, socket_options)
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                    failure = error
            raise failure

        async def connect_unix_socket(
            self,
            path: str,
            timeout: float | None = None,  # noqa: ASYNC109
            socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
        ) -> httpcore.AsyncNetworkStream:
            raise OutboundRefused("Sockets of this machine are not fetched from.")

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

    return Guarded()
