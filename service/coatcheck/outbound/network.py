"""A network where a name leads to addresses that were judged, and to nothing else, and where an answer comes in small bites.

A server decides how its answer is framed: one byte a chunk, or interim answers without end. What all of it may come to is counted
as it arrives, framing included, and between two bites everybody else has a turn.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from coatcheck.domain.errors import OutboundFailed, OutboundRefused
from coatcheck.outbound.guard import Allowance, judge

if TYPE_CHECKING:
    import httpcore

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""A host's addresses, in the order in which to try them."""

MAX_ADDRESSES = 4
BITE_BYTES = 4 * 1024
"""Of one-byte chunks so much takes some ten milliseconds to read."""


def guarded(allowance: Allowance, resolver: Resolver, secure: bool, max_bytes: int) -> httpcore.AsyncNetworkBackend:
    """The network for one request, of which no more than ``max_bytes`` come back. The library is loaded by the first fetch."""
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
                    return _measured(
                        await self._plain.connect_tcp(str(address), port, timeout, local_address, socket_options), max_bytes
                    )
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


def _measured(plain: httpcore.AsyncNetworkStream, max_bytes: int) -> httpcore.AsyncNetworkStream:
    import httpcore

    class Measured(httpcore.AsyncNetworkStream):
        def __init__(self) -> None:
            self._left = max_bytes

        async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
            some = await plain.read(min(max_bytes, BITE_BYTES), timeout)
            self._left -= len(some)
            if self._left < 0:
                raise OutboundFailed("The address answered with too many bytes around its answer.")
            return some

        async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
            await plain.write(buffer, timeout)

        async def aclose(self) -> None:
            await plain.aclose()

        async def start_tls(
            self,
            ssl_context: ssl.SSLContext,
            server_hostname: str | None = None,
            timeout: float | None = None,  # noqa: ASYNC109
        ) -> httpcore.AsyncNetworkStream:
            return _measured(await plain.start_tls(ssl_context, server_hostname, timeout), max_bytes)

        def get_extra_info(self, info: str) -> Any:
            return plain.get_extra_info(info)

    return Measured()
