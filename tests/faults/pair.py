"""Two apps as two processes would be: each with its own pool and owner, on one PostgreSQL and one index."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from structlog.testing import capture_logs

from coatcheck.app.compose import App
from coatcheck.app.storage import OpenedIndex
from coatcheck.domain.passages import StoredPoint
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.findings import ScanReport
from coatcheck.memory.integrity import Scanner
from coatcheck.ops import faults
from coatcheck.store.engine import with_driver
from tests import apps
from tests.apps import Caller
from tests.faults.troubled_index import TroubledIndex
from tests.postgres import Postgres

SHORT_LEASE_S = 0.4
"""The lease of the app that stands still. The others' are long, so that a busy machine does not take them away."""
SETTLE_LIMIT_S = 20


@dataclass(frozen=True, slots=True)
class Pair:
    """``first`` meets the fault; ``second`` goes on. ``brief`` is a first app in haste: its leases and waits are short.

    Their reconcilers only work when a test calls them.
    """

    first: App
    brief: App
    second: App
    index: TroubledIndex
    observer: AsyncEngine

    async def open_transactions(self) -> int:
        """Connections of the apps that are inside a transaction."""
        async with self.observer.connect() as connection:
            found = await connection.scalar(
                sa.text("""SELECT count(*) FROM pg_stat_activity
                            WHERE datname = current_database() AND application_name = 'coatcheck' AND state <> 'idle'""")
            )
        return int(found or 0)

    async def assert_no_open_transaction(self) -> None:
        """What a cancellation left to be rolled back is rolled back in a task of its own, so it may take a moment."""
        for _ in range(200):
            if not await self.open_transactions():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("a transaction stayed open")


@asynccontextmanager
async def two_apps(postgres: Postgres, database_url: str, folder: Path, **overrides: object) -> AsyncIterator[Pair]:
    """Overrides are settings of both apps."""
    quiet = {"lease_s": 30, "reconcile_interval_s": 600, "same_request_wait_s": 10, **overrides}
    name = sa.make_url(database_url).database
    assert name is not None
    observer = create_async_engine(with_driver(postgres.owner_url(name)))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(observer.dispose)
        on = await stack.enter_async_context(apps.foundations(database_url, folder, **quiet))
        index = TroubledIndex(on.index.index)
        on = dataclasses.replace(on, index=OpenedIndex(index))
        haste = {"lease_s": SHORT_LEASE_S, "same_request_wait_s": 3 * SHORT_LEASE_S}
        in_haste = dataclasses.replace(on, settings=on.settings.model_copy(update=haste))
        first = await stack.enter_async_context(apps.app_on(on, "first"))
        brief = await stack.enter_async_context(apps.app_on(in_haste, "brief"))
        second = await stack.enter_async_context(apps.app_on(on, "second"))
        yield Pair(first, brief, second, index, observer)


@dataclass(frozen=True, slots=True)
class RunSeen:
    """A run as its row says."""

    manifest_id: UUID
    session_id: UUID
    status: str
    lease_owner: str | None
    lease_until: datetime | None
    fence: int


class Scene:
    """One tenant's view of a pair: its clients, and what its rows and points say."""

    def __init__(self, pair: Pair, caller: Caller, clients: list[httpx.AsyncClient]) -> None:
        self.pair = pair
        self.caller = caller
        self.one, self.brief, self.two = clients

    @property
    def scope(self) -> TenantScope:
        return tenant_scope(self.caller.tenant_id)

    async def runs(self) -> list[RunSeen]:
        """Every run of the tenant, erased or not, oldest first."""
        rows = await self._rows("""
            SELECT manifest_id, session_id, status, lease_owner, lease_until, lease_fence FROM runs ORDER BY created_at, manifest_id
        """)
        return [RunSeen(r.manifest_id, r.session_id, r.status, r.lease_owner, r.lease_until, r.lease_fence) for r in rows]

    async def owed(self) -> list[tuple[str, int, str | None]]:
        """The outbox: kind, attempts, and the error of what was put aside."""
        rows = await self._rows("SELECT kind, attempts, quarantined_at, last_error FROM outbox ORDER BY created_at, item_id")
        return [(r.kind, r.attempts, r.last_error if r.quarantined_at else None) for r in rows]

    async def texts(self) -> int:
        """How many segments are stored, whoever may read them."""
        return len(await self._rows("SELECT sha256 FROM segments"))

    async def projected(self) -> int:
        """How many segments are recorded as being in the index."""
        return len(await self._rows("SELECT segment_sha256 FROM projections"))

    async def contexts(self) -> set[UUID]:
        """The runs that the points have their contexts of."""
        return {row.context_manifest_id for row in await self._rows("SELECT context_manifest_id FROM projections")}

    async def stored_points(self) -> list[StoredPoint]:
        """The tenant's points in the index."""
        return [p async for page in self.pair.index.scroll() for p in page if p.tenant_id == self.caller.tenant_id]

    async def points(self) -> int:
        """How many points are in the index."""
        return len(await self.stored_points())

    async def settled(self) -> None:
        """Has the second app's reconciler work until nothing is owed. What waits for its time has its time come."""
        async with asyncio.timeout(SETTLE_LIMIT_S):
            while any(error is None for _, _, error in await self.owed()):
                await self._rows("UPDATE outbox SET next_attempt_at = 'epoch' WHERE next_attempt_at > now() RETURNING item_id")
                await self.pair.second.use_cases.reconciler.drain_tenant(self.caller.tenant_id)
                await asyncio.sleep(0.02)

    async def reconcile_now(self, kind: str) -> None:
        """Has the time come for one kind of work, and lets the second app's reconciler do what is due."""
        await self._rows(f"UPDATE outbox SET next_attempt_at = 'epoch' WHERE kind = '{kind}' RETURNING item_id")
        await self.pair.second.use_cases.reconciler.drain_tenant(self.caller.tenant_id)

    async def end_leases(self) -> None:
        """Whoever claimed work has had it for longer than it may."""
        await self._rows("UPDATE outbox SET lease_until = 'epoch' WHERE lease_until IS NOT NULL RETURNING item_id")

    async def scan(self) -> ScanReport:
        return await Scanner(self.pair.second.parts).scan(self.scope, index=True)

    async def assert_agreement(self) -> None:
        """Nothing is owed, nobody holds a lease, no transaction is open, and rows and points say the same."""
        await self.settled()
        await self.pair.assert_no_open_transaction()
        report = await self.scan()
        assert report.findings_by_kind == {}, report.findings
        assert {run.lease_owner for run in await self.runs()} <= {None}
        assert {run.status for run in await self.runs()} <= {"acknowledged"}
        recorded = await self._rows("SELECT coalesce(sum(passages), 0) AS points FROM projections")
        assert await self.points() == recorded[0].points

    async def _rows(self, statement: str) -> list[Any]:
        async def work(tx: Any) -> list[Any]:
            return list((await tx.connection.execute(sa.text(statement))).all())

        return await self.pair.second.parts.database.work(self.scope, work)


@asynccontextmanager
async def scene(pair: Pair) -> AsyncIterator[Scene]:
    """A tenant of the test's own; whatever a test armed or ordered is over at its end."""
    caller = await apps.new_tenant(pair.second)
    # Injected errors are logged with their tracebacks, and rendering one for a terminal takes seconds.
    with capture_logs():
        async with AsyncExitStack() as stack:
            stack.callback(faults.disarm)
            stack.callback(pair.index.calm)
            each = [apps.client(one, caller) for one in (pair.first, pair.brief, pair.second)]
            yield Scene(pair, caller, [await stack.enter_async_context(client) for client in each])


@asynccontextmanager
async def stalled(point: str) -> AsyncIterator[faults.Hold]:
    """The first to arrive at the point stands still there and renews no lease, as a process that died or that hangs."""
    async with faults.held("before-renew"), faults.held(point, first_alone=True) as hold:
        yield hold
