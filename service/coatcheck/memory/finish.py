"""Steps 2 and 3 of the protocol: project a persisted run under its lease, then acknowledge it under its fence."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

from coatcheck.domain.errors import CoatcheckError, Erased, FenceLost, StoreUnavailable
from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.runs import Lease, Run
from coatcheck.domain.scopes import TenantScope
from coatcheck.domain.sessions import Session
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.projection import Projected, Projector
from coatcheck.ops.faults import reach_async
from coatcheck.store import entries, outbox, projections, run_leases, runs, segment_contexts, sessions
from coatcheck.store.database import WorkerTransaction


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
            async with self._kept_alive(scope, run.manifest_id, lease):
                return await self._finish(scope, run, lease)
        except FenceLost:
            raise
        except BaseException:
            await asyncio.shield(self._release(scope, run.manifest_id, lease))
            raise

    async def _finish(self, scope: TenantScope, run: Run, lease: Lease) -> Run:
        started = time.monotonic()
        session = await self._session(scope, run)
        with self._parts.progress.stage("project"):
            shas = await self._parts.database.work(scope, lambda tx: entries.segments_of(tx, run.manifest_id))
            projected = await self._projector.project(scope, session, shas)
        await reach_async("before-acknowledge")
        project_ms = round((time.monotonic() - started) * 1_000)

        try:
            finished = await self._parts.database.work(
                scope, lambda tx: self._acknowledge(tx, run, lease, session, projected, project_ms)
            )
        except _Refused:
            raise await self._withdraw(scope, run, projected) from None
        await reach_async("after-acknowledge")
        return finished

    async def _session(self, scope: TenantScope, run: Run) -> Session:
        session = await self._parts.database.work(scope, lambda tx: sessions.find_any(tx, run.session_id))
        if session is None or session.erased_at is not None:
            raise Erased
        return session

    async def _acknowledge(
        self, tx: WorkerTransaction, run: Run, lease: Lease, session: Session, projected: Projected, project_ms: int
    ) -> Run:
        generation = self._parts.generation.number
        timings = {**run.timings_ms, "project": project_ms}
        await projections.record(tx, projected.rows)
        passages = await projections.passages_of(tx, run.manifest_id, generation)
        if not await run_leases.acknowledge(tx, run.manifest_id, lease, self._parts.clock(), passages, generation, timings):
            raise _Refused
        await outbox.delete_for_manifest(tx, run.manifest_id)
        current = await sessions.find_any(tx, run.session_id)
        if current is not None and current.acl != session.acl:
            await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.ACL, run.session_id)
        finished = await runs.find(tx, run.manifest_id)
        if finished is None:
            raise _Refused
        await reach_async("inside-acknowledge")
        return finished

    async def _withdraw(self, scope: TenantScope, run: Run, projected: Projected) -> CoatcheckError:
        """Why the acknowledgement was refused. Erased points are taken out again; a newer owner's points, the same ones, stay."""
        current = await self._parts.database.work(scope, lambda tx: runs.find(tx, run.manifest_id))
        session = await self._parts.database.work(scope, lambda tx: sessions.find_any(tx, run.session_id))
        if session is None or session.erased_at is not None:
            await self._parts.index.delete_session(scope, run.session_id)
            return Erased()
        if current is None or current.erased:
            await self._remove_unreferenced(scope, run.session_id, projected)
            return Erased()
        return FenceLost()

    async def _remove_unreferenced(self, scope: TenantScope, session_id: UUID, projected: Projected) -> None:
        shas = [row.segment_sha256 for row in projected.rows]
        kept = await self._parts.database.work(scope, lambda tx: segment_contexts.contexts(tx, session_id, shas))
        await self._projector.remove(scope, session_id, [row for row in projected.rows if row.segment_sha256 not in kept])

    async def _release(self, scope: TenantScope, manifest_id: UUID, lease: Lease) -> None:
        with contextlib.suppress(StoreUnavailable):
            await self._parts.database.work(scope, lambda tx: run_leases.release(tx, manifest_id, lease))

    @contextlib.asynccontextmanager
    async def _kept_alive(self, scope: TenantScope, manifest_id: UUID, lease: Lease) -> AsyncIterator[None]:
        lease_s = self._parts.settings.lease_s

        async def renewed(tx: WorkerTransaction) -> bool:
            return await run_leases.renew(tx, manifest_id, lease, self._parts.clock() + timedelta(seconds=lease_s))

        async def renew() -> None:
            alive = True
            while alive:
                await asyncio.sleep(lease_s / 3)
                await reach_async("before-renew")
                with contextlib.suppress(StoreUnavailable):
                    alive = await self._parts.database.work(scope, renewed)

        task = asyncio.create_task(renew())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


class _Refused(Exception):
    """Rolls transaction B back: the fence was lost, or the run was erased."""
