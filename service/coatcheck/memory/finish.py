"""Steps 2 and 3 of the protocol: project a persisted run under its lease, then acknowledge it under its fence."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from coatcheck.domain.errors import CoatcheckError, Erased, FenceLost, StoreUnavailable
from coatcheck.domain.ports import Clock
from coatcheck.domain.runs import Lease, Run
from coatcheck.domain.scopes import TenantScope
from coatcheck.domain.sessions import Session
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.projection import Projector
from coatcheck.ops.faults import reach_async
from coatcheck.store import entries, outbox, projections, run_leases, runs, sessions
from coatcheck.store.database import WorkerTransaction

log = structlog.get_logger(__name__)


class Finisher:
    """Brings a persisted run to its acknowledgement. Doing it twice does it once."""

    def __init__(self, parts: Collaborators, projector: Projector) -> None:
        self._parts = parts
        self._projector = projector

    async def finish(self, scope: TenantScope, run: Run, lease: Lease) -> Run:
        """The acknowledged run.

        Raises FenceLost when another owner took the work over, Erased when run or session went meanwhile, and what the
        projection raises; the lease is given back then, so that the next request or the reconciler goes on at once.
        """
        try:
            async with self._kept_alive(scope, run.manifest_id, lease) as kept:
                return await self._finish(scope, run, lease, kept)
        except FenceLost:
            raise
        except BaseException:
            await asyncio.shield(self._release(scope, run.manifest_id, lease))
            raise

    async def _finish(self, scope: TenantScope, run: Run, lease: Lease, kept: _Kept) -> Run:
        started = time.monotonic()
        async with self._parts.working.of(scope.tenant_id):
            shas = await self._parts.database.work(scope, lambda tx: entries.segments_of(tx, run.manifest_id))
        try:
            await self._projector.project(scope, run.session_id, shas, still_ours=kept.require)
        except _Lost:
            raise await self._why_not(scope, run) from None
        await reach_async("before-acknowledge")
        project_ms = round((time.monotonic() - started) * 1_000)

        try:
            async with self._parts.working.of(scope.tenant_id):
                finished = await self._parts.database.work(scope, lambda tx: self._acknowledge(tx, run, lease, project_ms))
        except _Refused:
            raise await self._why_not(scope, run) from None
        await reach_async("after-acknowledge")
        return finished

    async def _acknowledge(self, tx: WorkerTransaction, run: Run, lease: Lease, project_ms: int) -> Run:
        generation = self._parts.generation.number
        timings = {**run.timings_ms, "project": project_ms}
        await sessions.lock(tx, run.session_id)
        passages = await projections.passages_of(tx, run.manifest_id, generation)
        if not await run_leases.acknowledge(tx, run.manifest_id, lease, self._parts.clock(), passages, generation, timings):
            raise _Refused
        await outbox.delete_for_manifest(tx, run.manifest_id)
        finished = await runs.find(tx, run.manifest_id)
        if finished is None:
            raise _Refused
        await reach_async("inside-acknowledge")
        return finished

    async def _why_not(self, scope: TenantScope, run: Run) -> CoatcheckError:
        """Why the run is not this owner's to acknowledge. Whatever it wrote was recorded, or taken out again, slice by slice."""

        async def work(tx: WorkerTransaction) -> tuple[Session | None, Run | None]:
            return await sessions.find_any(tx, run.session_id), await runs.find(tx, run.manifest_id)

        session, current = await self._parts.database.work(scope, work)
        is_gone = session is None or session.erased_at is not None or current is None or current.erased
        return Erased() if is_gone else FenceLost()

    async def _release(self, scope: TenantScope, manifest_id: UUID, lease: Lease) -> None:
        with contextlib.suppress(StoreUnavailable):
            await self._parts.database.work(scope, lambda tx: run_leases.release(tx, manifest_id, lease))

    @contextlib.asynccontextmanager
    async def _kept_alive(self, scope: TenantScope, manifest_id: UUID, lease: Lease) -> AsyncIterator[_Kept]:
        lease_s = self._parts.settings.lease_s
        kept = _Kept(lease.until, self._parts.clock)

        async def renew() -> None:
            while not kept.lost:
                await asyncio.sleep(lease_s / 3)
                await reach_async("before-renew")
                until = self._parts.clock() + timedelta(seconds=lease_s)
                with contextlib.suppress(StoreUnavailable):
                    if await self._parts.database.work(scope, lambda tx: run_leases.renew(tx, manifest_id, lease, until)):  # noqa: B023
                        kept.until = until
                    else:
                        kept.lost = True

        task = asyncio.create_task(renew())
        try:
            yield kept
        finally:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()) is not None:
                # What was finished is finished; what was not had lost its lease by the clock.
                log.warning("lease.not_renewed", problem=type(error).__name__)


@dataclass(slots=True)
class _Kept:
    """A lease as its owner knows it."""

    until: datetime
    clock: Clock
    lost: bool = False

    def require(self) -> None:
        """Raises _Lost when the lease has ended: whatever is written from then on, somebody else may have written anew."""
        if self.lost or self.clock() >= self.until:
            raise _Lost


class _Lost(Exception):
    """The lease ended before the work did."""


class _Refused(Exception):
    """Rolls transaction B back: the fence was lost, or the run was erased."""
