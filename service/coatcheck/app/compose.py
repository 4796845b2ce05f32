"""One composed app: parts wired, what a start owes done, background work running; and in the reverse order, stopped.

``foundations`` opens what one process opens once (rows, index, models). ``composed`` wires an app on them; two apps on the same
foundations, each with its own pool and owner, are two processes as far as leases and fences go.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from starlette.types import ASGIApp

from coatcheck.api.app import create_api
from coatcheck.api.counting import counted
from coatcheck.api.edge import Limits
from coatcheck.api.gate import Gate
from coatcheck.api.mcp import McpDoor
from coatcheck.app import stopping
from coatcheck.app.bootstrap import ensure_first_key, ensure_local_key
from coatcheck.app.data_dir import DataDirectory
from coatcheck.app.directory import StoreDirectory
from coatcheck.app.keys import root_keys
from coatcheck.app.models import Models, open_models
from coatcheck.app.storage import OpenedIndex, check_choice, open_index, open_rows
from coatcheck.compaction import policy_document
from coatcheck.compaction.planner import Planner
from coatcheck.compaction.redaction.redactor import Redactor
from coatcheck.domain.errors import CoatcheckError, IndexUnavailable
from coatcheck.domain.identifiers import utc_now, uuid7
from coatcheck.identity.authenticate import Authenticator
from coatcheck.identity.key_sets import KeySets
from coatcheck.identity.keyring import Keyring
from coatcheck.identity.tokens import TokenVerifier
from coatcheck.index.passages import dense_worthy
from coatcheck.memory import services, startup
from coatcheck.memory.cache_expiry import CacheExpiry
from coatcheck.memory.collaborators import Collaborators, ServiceState
from coatcheck.memory.journal import ErasureJournal
from coatcheck.memory.limits import Limiter, default_limits
from coatcheck.memory.planning import Planning
from coatcheck.memory.recovery import recover_index
from coatcheck.memory.root_keys import open_keyring
from coatcheck.memory.services import UseCases
from coatcheck.memory.startup import Opened, Startup
from coatcheck.ops import faults
from coatcheck.ops.disk import Disk
from coatcheck.ops.folders import require_unshared
from coatcheck.ops.metrics import Metrics
from coatcheck.ops.progress import ProgressBoard, standard_stages
from coatcheck.ops.slots import FairSlots
from coatcheck.ops.watchdog import Watchdog
from coatcheck.outbound.client import Outbound
from coatcheck.outbound.guard import Allowance
from coatcheck.settings import Settings, armed_crash_points, cache_dir
from coatcheck.store.database import Database


@dataclass(frozen=True, slots=True)
class Foundations:
    """What one process opens once."""

    settings: Settings
    directory: DataDirectory
    database_url: str
    keyring: Keyring
    models: Models
    generation: Opened
    index: OpenedIndex
    redactor: Redactor
    board: ProgressBoard


@dataclass(frozen=True, slots=True)
class App:
    """A running app. ``asgi`` is the whole of it, edge included."""

    asgi: ASGIApp
    directory: DataDirectory
    parts: Collaborators
    use_cases: UseCases
    gate: Gate
    startup: Startup
    models: Models


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[App]:
    """The app of this process, ready to serve; the data directory is this process's until the block ends."""
    async with foundations(settings) as opened, composed(opened, alone=settings.embedded) as app:
        if not settings.embedded:
            await ensure_first_key(app.parts, app.directory)
        yield app


@asynccontextmanager
async def foundations(settings: Settings) -> AsyncIterator[Foundations]:
    """Raises RefusedToStart, StoreUnavailable, IndexUnavailable; whatever was opened by then is closed."""
    crash_points = armed_crash_points()
    if crash_points is not None:
        faults.arm(crash_points)
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(DataDirectory(settings.data_dir))
        check_choice(settings)
        redactor = await asyncio.to_thread(Redactor, cache_dir() / "rules", settings.redaction_rules)
        keys = await asyncio.to_thread(root_keys, settings, directory)
        board = ProgressBoard(standard_stages(settings.stage_limit_s))
        models = await asyncio.to_thread(open_models, settings, board)
        # Closed last: by then everything is on disk, and what a model is still at is for nobody.
        stack.push_async_callback(models.close, stopping.Shares(settings.drain_grace_s).models_s)
        rows = await open_rows(settings, directory)
        stack.push_async_callback(rows.stop)
        database = await Database.connect(rows.url, pool_size=1)
        try:
            await database.check_durability()
            keyring = await open_keyring(database, keys.current, keys.previous)
            generation = await startup.open_generation(database, settings, models.embedder_revision, models.dimensions)
        finally:
            await database.close()
        index = await open_index(settings, directory)
        stack.push_async_callback(index.index.close)
        yield Foundations(settings, directory, rows.url, keyring, models, generation, index, redactor, board)


@asynccontextmanager
async def composed(on: Foundations, *, alone: bool, owner: str | None = None, replays_journal: bool = False) -> AsyncIterator[App]:
    """An app on its foundations. ``alone``: whoever holds the data directory's lock holds all of the data (embedded), so that
    leases are a dead predecessor's and void. By URL other replicas live, and their leases run until they run out.

    Raises RefusedToStart when the journal is ahead of the database, unless the caller will replay it.
    """
    settings = on.settings
    owner = owner or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    async with AsyncExitStack() as stack:
        database = await Database.connect(
            on.database_url, pool_size=settings.pool_size, statement_timeout_s=settings.statement_timeout_s
        )
        stack.push_async_callback(database.close)
        parts = _parts(on, database, owner)
        if not replays_journal:
            await startup.check_journal(database, parts.journal)
        use_cases = services.build(parts)
        starting = Startup(parts)
        if settings.embedded:
            await ensure_local_key(parts, on.directory)
        if alone:
            await starting.void_leases()
        await _catch_up(on, parts, use_cases, starting)
        gate = Gate(settings.max_in_flight)
        credentials = StoreDirectory(database)
        key_sets = KeySets(parts.outbound.get)
        stack.push_async_callback(key_sets.close)
        authenticator = Authenticator(credentials, on.keyring, parts.clock, TokenVerifier(credentials, key_sets, parts.clock))
        mcp = McpDoor(counted(use_cases.services, parts.metrics))
        stack.push_async_callback(mcp.close)
        asgi = create_api(
            use_cases.services,
            authenticator=authenticator,
            admission=parts.limiter,
            gate=gate,
            limits=Limits(settings.max_body_bytes, settings.deadline_s, settings.max_deadline_s),
            metrics=parts.metrics,
            progress=parts.progress,
            new_id=uuid7,
            mounts={"/mcp": mcp},
        )
        app = App(asgi, on.directory, parts, use_cases, gate, starting, on.models)
        watchdog = Watchdog(parts.progress, settings.watchdog_grace_s)
        watchdog.start(asyncio.get_running_loop())
        stack.callback(watchdog.stop)
        background = [asyncio.create_task(use_cases.reconciler.run())]
        # The rules are compiled once for each machine and loaded once for each process: not while the first caller waits.
        background.append(asyncio.create_task(asyncio.to_thread(on.redactor.warm)))
        background.append(asyncio.create_task(CacheExpiry(parts).run()))
        background.append(asyncio.create_task(use_cases.housekeeper.run()))
        if settings.embedded and alone:
            background.append(asyncio.create_task(_flush(on, parts)))
        if parts.state.building:
            background.append(asyncio.create_task(_close_generation(parts, starting)))
        try:
            yield app
        finally:
            await stopping.stop(app, background)


async def _catch_up(on: Foundations, parts: Collaborators, use_cases: UseCases, starting: Startup) -> None:
    if not on.index.was_clean:
        await recover_index(parts, use_cases.reconciler, on.index.flushed_at)
    if on.generation.building:  # at each start until it is filled: the one that opened it may have died before it asked for that
        await starting.fill_generation()


def _parts(on: Foundations, database: Database, owner: str) -> Collaborators:
    settings = on.settings
    metrics = Metrics(on.board)
    journal_folder = settings.erasure_journal or on.directory.journal
    if journal_folder.exists():
        require_unshared(journal_folder)
    journal = ErasureJournal(journal_folder, owner, *on.keyring.journal_keys())
    planner = Planner(
        on.redactor,
        policy=policy_document.of(settings.policy),
        router=on.models.shortening.router,
        compressor=on.models.shortening.compressor,
        entailment=on.models.shortening.entailment,
        summariser=on.models.shortening.summariser,
        dense_worthy=dense_worthy if on.models.lanes is not None else None,
    )
    return Collaborators(
        settings=settings,
        database=database,
        index=on.index.index,
        lanes=on.models.lanes,
        reranker=on.models.reranker,
        absent=on.models.absent,
        planning=Planning(planner, on.board, settings.max_in_flight),
        redactor=on.redactor,
        keyring=on.keyring,
        journal=journal,
        clock=utc_now,
        new_id=uuid7,
        metrics=metrics,
        limiter=Limiter(database, default_limits(settings), on.models.embedding, metrics),
        working=FairSlots(settings.max_working),
        disk=Disk([on.directory.path, journal_folder], settings.min_free_bytes),
        progress=on.board,
        generation=on.generation.generation,
        owner=owner,
        outbound=Outbound(Allowance(settings.outbound_allow_private, settings.outbound_allow_loopback)),
        state=ServiceState(building=on.generation.building),
    )


async def _flush(on: Foundations, parts: Collaborators) -> None:
    """Puts an embedded index on disk every few seconds, and takes what was erased out of its files."""
    while True:
        await asyncio.sleep(parts.settings.index_flush_interval_s)
        with contextlib.suppress(IndexUnavailable):
            await parts.index.flush()
            if parts.state.erased and on.index.vacuum is not None:
                parts.state.erased = False
                await on.index.vacuum()


async def _close_generation(parts: Collaborators, starting: Startup) -> None:
    while True:
        await asyncio.sleep(parts.settings.reconcile_interval_s)
        with contextlib.suppress(CoatcheckError):
            if await starting.close_generation():
                return
