"""The app as a process (uvicorn), and inside another one (the CLI, tests, benchmarks) over ASGI."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, cast

import structlog

from coatcheck.app import stopping
from coatcheck.app.compose import App, running
from coatcheck.domain.errors import RefusedToStart
from coatcheck.ops import garbage, logging
from coatcheck.settings import Settings

if TYPE_CHECKING:
    import httpx


WARM_AFTER_S = 0.5
"""Importing a model's library keeps the interpreter busy, and the first answer waiting."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class InProcess:
    """A running app to talk to over its routes. ``transport`` is for an asynchronous client; ``api_key`` opens it."""

    app: App
    transport: httpx.ASGITransport
    api_key: str


@asynccontextmanager
async def in_process(settings: Settings, api_key: str | None = None) -> AsyncIterator[InProcess]:
    """Starts the app in this process and stops it. Raises RefusedToStart, StoreUnavailable, IndexUnavailable.

    ``api_key`` is the caller's own; the local key, which opens everything, stands in only for one that brings none.
    """
    import httpx

    logging.configure("error" if settings.log_level == "error" else "warning")
    async with running(settings) as app:
        yield InProcess(app, httpx.ASGITransport(app.asgi), api_key or _local_key(app))


def _local_key(app: App) -> str:
    try:
        return app.directory.key_file.read_text("ascii").strip()
    except FileNotFoundError as error:
        raise RefusedToStart(
            f"{app.directory.key_file} is not there, so that no key opens this database here: set COATCHECK_API_KEY, "
            "and COATCHECK_URL where the service is another machine's."
        ) from error


def serve(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT: readiness off, accept no more, finish or release, exit within the grace."""
    logging.configure(settings.log_level)
    # A thread that plans gives the interpreter up after a millisecond, not five: answers pass through many hands on the loop.
    sys.setswitchinterval(0.001)
    asyncio.run(_serve(settings))


def _no_place(settings: Settings, why: BaseException | None) -> RefusedToStart:
    taken = isinstance(why, OSError) and why.errno == errno.EADDRINUSE
    reason = "another process listens there" if taken else str(why)
    return RefusedToStart(
        f"Nothing can be served on {settings.host}:{settings.listen_port}: {reason}. "
        "Name another place with --port and --host (COATCHECK_LISTEN_PORT, COATCHECK_HOST); port 0 takes a free one."
    )


async def _warm(app: App) -> None:
    """Loads the models when whoever waits for the service has been told that it is ready; what lives then is there to stay."""
    await asyncio.sleep(WARM_AFTER_S)
    await app.models.warm()
    garbage.settle()


async def _serve(settings: Settings) -> None:
    import uvicorn

    from coatcheck.app.connections import PatientProtocol

    shares, last_resort = stopping.Shares(settings.drain_grace_s), stopping.LastResort(settings.drain_grace_s)
    async with running(settings) as app:

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                try:
                    await super().startup(sockets)
                except SystemExit as error:  # the library's way of saying that there is no such place to listen
                    raise _no_place(settings, error.__context__) from error
                host, port = self.servers[0].sockets[0].getsockname()[:2]
                app.directory.publish_url(f"http://{f'[{host}]' if ':' in host else host}:{port}")
                log.info("serving", port=port)
                self.warming = asyncio.create_task(_warm(app))

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                """As the library's, without raising the signal again at the end: the app is still to be stopped in order."""
                before = {sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGINT, signal.SIGTERM)}
                try:
                    yield
                finally:
                    for sig, handler in before.items():
                        signal.signal(sig, handler)

            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                app.parts.state.draining = True
                app.gate.drain()
                last_resort.begin()
                super().handle_exit(sig, frame)

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                # Beside it: whoever waits for what will not be done in time is told so while there is a connection.
                finishing = asyncio.create_task(stopping.finish(app))
                await super().shutdown(sockets)
                await finishing

        await Server(
            uvicorn.Config(
                app.asgi,
                host=settings.host,
                port=settings.listen_port,
                http=PatientProtocol,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=cast(int, shares.work_s + shares.answers_s),  # asyncio.wait_for takes a float
            )
        ).serve()
    last_resort.closed()
