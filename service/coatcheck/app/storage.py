"""Where the rows and the points are: embedded in the data directory, or by URL. Embedded is chosen, never fallen back to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from coatcheck.app.data_dir import DataDirectory
from coatcheck.domain.errors import RefusedToStart
from coatcheck.domain.ports import VectorIndex
from coatcheck.settings import Settings, memory_index_is_enough
from coatcheck.store.migrate import migrate
from coatcheck.store.schema import SCHEMA_REVISION

if TYPE_CHECKING:
    from coatcheck.store.embedded import EmbeddedServer

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Rows:
    """The serving URL, and the embedded server behind it where there is one."""

    url: str
    server: EmbeddedServer | None = None

    async def stop(self) -> None:
        if self.server is not None:
            await asyncio.to_thread(self.server.stop)


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """The index of one generation; what an embedded one says of the stop before this start."""

    index: VectorIndex
    was_clean: bool = True
    flushed_at: datetime | None = None
    vacuum: Callable[[], Awaitable[bool]] | None = None
    """Rewrites an embedded engine's files without what was deleted."""


def check_choice(settings: Settings) -> None:
    """Raises RefusedToStart where nothing says which of the two it is: before anything else of what is missing is asked for."""
    if settings.database_url is None and not settings.embedded:
        raise RefusedToStart(
            "Nothing says where the data is: start with --embedded (COATCHECK_EMBEDDED=true), or set COATCHECK_DATABASE_URL, "
            "COATCHECK_QDRANT_URL, COATCHECK_ROOT_KEY_FILE and COATCHECK_ERASURE_JOURNAL."
        )


async def open_rows(settings: Settings, directory: DataDirectory) -> Rows:
    """Starts (and migrates) the embedded server, or takes the configured URL. Raises RefusedToStart, StoreUnavailable."""
    if settings.database_url is not None:
        return Rows(settings.database_url.get_secret_value())
    try:
        from coatcheck.store.embedded import EmbeddedServer
    except ImportError as error:
        raise RefusedToStart("The embedded server is not installed: pip install 'coatcheck[embedded]'.") from error
    server = await asyncio.to_thread(EmbeddedServer.start, directory.path, allow_root_home=settings.allow_root_home)
    try:
        if await asyncio.to_thread(migrate, server.owner_url):
            log.info("the database was migrated", version=SCHEMA_REVISION)
    except BaseException:
        await asyncio.to_thread(server.stop)
        raise
    return Rows(server.url, server)


async def open_index(settings: Settings, directory: DataDirectory) -> OpenedIndex:
    """The embedded index of the data directory, or the configured server. Raises RefusedToStart, IndexUnavailable."""
    if settings.qdrant_url is not None:
        try:
            from coatcheck.index.server import IN_MEMORY, ServerIndex
        except ImportError as error:
            raise RefusedToStart("The index's client is not installed: pip install 'coatcheck[qdrant]'.") from error
        if settings.qdrant_url == IN_MEMORY and not memory_index_is_enough():
            raise RefusedToStart("An index in memory is gone with its process: COATCHECK_QDRANT_URL has to name a server.")
        key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
        return OpenedIndex(await ServerIndex.open(settings.qdrant_url, key, settings.qdrant_collection))
    if not settings.embedded:
        raise RefusedToStart("Set COATCHECK_QDRANT_URL, or choose --embedded.")
    try:
        from coatcheck.index.edge import EdgeIndex
    except ImportError as error:
        raise RefusedToStart("The embedded index is not installed: pip install 'coatcheck[embedded]'.") from error
    edge = await asyncio.to_thread(EdgeIndex.open, directory.index)
    # One that was never flushed is new: where there are rows, it stands in the place of one that was lost or moved away.
    return OpenedIndex(edge, edge.was_clean and edge.flushed_at is not None, edge.flushed_at, edge.vacuum)
