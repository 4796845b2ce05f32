"""Asks an address that an operator has named for a small document. No redirect is followed, no proxy asked, no cookie kept."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterable
from dataclasses import dataclass

from coatcheck.domain.errors import OutboundFailed
from coatcheck.outbound.guard import Allowance, Target, target_of
from coatcheck.outbound.network import Resolver, guarded

MAX_BODY_BYTES = 256 * 1024
TIMEOUT_S = 5.0
FRAMING_BYTES = 64 * 1024
"""What may come around a body, and as much again as the body itself: heads, chunks' sizes, interim answers."""


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

        backend = guarded(self._allowance, self._resolver, target.secure, 2 * request.max_bytes + FRAMING_BYTES)
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
