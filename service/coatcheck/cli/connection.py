"""How a command finds its service: COATCHECK_URL, else the one that runs on the data directory, else one in this process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from coatcheck.cli import output

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck.app.compose import App
    from coatcheck.settings import Settings
    from coatcheck_client import AsyncCoatcheck, RetryPolicy
    from coatcheck_client.wire import Problem

T = TypeVar("T")
SAID_FROM_S = 2.0
"""A shorter wait is none to speak of."""
IN_PROCESS_URL = "http://in-process"


def run(work: Callable[[AsyncCoatcheck], Awaitable[T]]) -> T:
    """Runs the work with a connected client."""

    async def connected() -> T:
        async with connect() as client:
            return await work(client)

    return asyncio.run(connected())


@asynccontextmanager
async def connect() -> AsyncIterator[AsyncCoatcheck]:
    """A client of the service that is named or running; where there is none, the app in this process for as long as needed."""
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.discovery import configured_key, configured_url

    if configured_url():
        async with AsyncCoatcheck(retries=retries()) as client:
            yield client
        return
    # The service's own reading of where its data is: a settings file names it to both.
    settings = local_settings()
    if await _running_on(settings.data_dir):
        async with AsyncCoatcheck(data_dir=settings.data_dir, retries=retries()) as client:
            yield client
        return
    if sys.stderr.isatty():
        output.warn("no service is running: starting one for this command (`coatcheck serve --embedded` keeps one running)")
    async with in_process(settings, configured_key()) as (_, client):
        yield client


def retries() -> RetryPolicy:
    """The client's own policy. Whoever waits is told why: a full disk may take more than a minute to be an error."""
    from coatcheck_client import RetryPolicy

    def told(problem: Problem, seconds: float) -> None:
        if seconds >= SAID_FROM_S:
            output.warn(f"{(problem.detail or problem.title).rstrip('.')}; again in {seconds:.0f} s")

    return RetryPolicy(told=told)


async def running() -> str | None:
    """The URL of the service that a command would ask; null where it would start the app itself."""
    from coatcheck_client.discovery import configured_url

    return configured_url() or await _running_on(local_settings().data_dir)


@asynccontextmanager
async def in_process(settings: Settings, api_key: str | None = None) -> AsyncIterator[tuple[App, AsyncCoatcheck]]:
    """The app in this process and its client, with the data directory's local key unless another is given.

    Raises RefusedToStart, for one when another process owns the data directory.
    """
    from coatcheck.app.serve import in_process as start
    from coatcheck.ops import logging
    from coatcheck_client import AsyncCoatcheck

    # The command's own output is what its user came for: the app speaks up only when something is wrong, and on stderr.
    logging.configure("warning")
    async with (
        start(settings, api_key) as app,
        AsyncCoatcheck(IN_PROCESS_URL, app.api_key, transport=app.transport, retries=retries()) as client,
    ):
        try:
            yield app.app, client
        except asyncio.CancelledError:
            output.warn("stopping: what is under way is finished first")
            raise


def local_settings(**overrides: object) -> Settings:
    """This machine's settings; embedded unless a database is named."""
    from coatcheck.settings import load

    settings = load(None, **overrides)
    say_what_is_not_read()
    return settings if settings.embedded or settings.database_url else load(None, **{**overrides, "embedded": True})


def say_what_is_not_read() -> None:
    """A file of the working directory is no settings file of ours until somebody names it."""
    from coatcheck.settings import ENV_FILE, unread_file

    file = unread_file()
    if file is not None:
        output.warn(f"the settings in {file} are not read: name it with {ENV_FILE}={file}")


async def _running_on(data_dir: Path) -> str | None:
    """The URL of the service that run.json names, if it is alive: it may have died without removing the file."""
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.discovery import running_url
    from coatcheck_client.errors import ServiceUnreachable

    url = running_url(data_dir)
    if url is None:
        return None
    async with AsyncCoatcheck(data_dir=data_dir) as client:
        try:
            return url if await client.is_alive() else None
        except ServiceUnreachable:
            return None
