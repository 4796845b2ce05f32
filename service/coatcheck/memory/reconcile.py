"""The reconciler: does the work that the outbox holds, tenant after tenant, and never what a newer owner holds.

Leases and fences make two of them safe; a claim counts as an attempt, also when its process dies; what fails again and again
is put aside with its error, and the rest goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog

from coatcheck.domain.errors import CoatcheckError, Erased, FenceLost, IndexUnavailable, StorageFull, StoreUnavailable
from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.domain.runs import RunStatus
from coatcheck.domain.scopes import TenantScope
from coatcheck.domain.sessions import Session
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.erasing import Eraser
from coatcheck.memory.finish import Finisher
from coatcheck.memory.projection import Projector
from coatcheck.memory.rounds import Rounds
from coatcheck.ops.faults import reach_async
from coatcheck.store import entries, outbox, run_leases, runs, sessions
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.outbox import Failed, OutboxStats

log = structlog.get_logger(__name__)
BATCH = 4
"""Items claimed for one tenant at a time."""
TURN_S = 2.0
"""A tenant's turn in the background: no new piece of work is begun after so long, and others come first."""
MAX_BACKOFF_S = 300
FULL_PAUSE_S = 10
"""What would add to a full disk is looked at again after so long."""
MAX_DOUBLINGS = 20
HELD_PAUSE_S = 0.02
"""Between two looks at what others hold, which mostly is theirs for some milliseconds."""
NEVER_ENDED = "never-ended"
"""The error of work that was begun again and again and never ended: its process died each time."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What one walk over the tenants did."""

    completed: int = 0
    failed: int = 0
    quarantined: int = 0

    def __add__(self, other: Reconciled) -> Reconciled:
        return Reconciled(self.completed + other.completed, self.failed + other.failed, self.quarantined + other.quarantined)


class Reconciler:
    """Works the outbox off, in the background and on demand."""

    def __init__(self, parts: Collaborators, finisher: Finisher, eraser: Eraser, projector: Projector) -> None:
        self._parts = parts
        self._finisher = finisher
        self._eraser = eraser
        self._projector = projector
        self._rounds = Rounds(parts.database, parts.index.check, self.turn, parts.settings.reconcile_interval_s)

    async def run(self) -> None:
        """Until ``stop``: turn after turn for every tenant, with pauses while there is nothing to do."""
        await self._rounds.run()

    def stop(self) -> None:
        self._rounds.stop()

    async def turn(self, scope: TenantScope) -> bool:
        """Batch after batch for one tenant while there is something to do, for a bounded while. Whether anything was done.

        Raises IndexUnavailable, StoreUnavailable: an outage is no work's failure.
        """
        ends_at, worked = time.monotonic() + TURN_S, False
        while not self._rounds.is_stopping:
            done = await self.batch(scope, ends_at)
            worked = worked or bool(done.completed)
            if not done.completed or time.monotonic() >= ends_at:
                break
        return worked

    async def drain_tenant(self, tenant_id: UUID) -> Reconciled:
        """Batch after batch for one tenant, until nothing is due. Raises as ``turn``."""
        await self._parts.index.check()
        scope, total = tenant_scope(tenant_id), Reconciled()
        while True:
            done = await self.batch(scope)
            total += done
            if not done.completed:
                return total

    async def settle_tenant(self, tenant_id: UUID) -> Reconciled:
        """As ``drain_tenant``, and what others held meanwhile is done as well, or was theirs for as long as a lease lasts."""
        scope, total = tenant_scope(tenant_id), await self.drain_tenant(tenant_id)
        ends_at = time.monotonic() + self._parts.settings.lease_s
        while time.monotonic() < ends_at:
            if not await self._parts.database.work(scope, lambda tx: outbox.is_held(tx, self._parts.clock())):
                break
            await asyncio.sleep(HELD_PAUSE_S)
            total += await self.drain_tenant(tenant_id)
        return total

    async def stats(self, scope: TenantScope) -> OutboxStats:
        return await self._parts.database.work(scope, outbox.stats)

    async def requeue(self, scope: TenantScope) -> int:
        """Gives what was put aside another round of attempts. Returns how many."""
        return await self._parts.database.work(scope, outbox.requeue_quarantined)

    async def batch(self, scope: TenantScope, ends_at: float = math.inf) -> Reconciled:
        """A few items, as long as the turn lasts; what was claimed and not begun is given back."""
        now = self._parts.clock()
        until = now + timedelta(seconds=self._parts.settings.lease_s)
        items = await self._parts.database.work(scope, lambda tx: outbox.claim(tx, self._parts.owner, BATCH, now, until))
        total = Reconciled()
        for position, item in enumerate(items):
            if position and (time.monotonic() >= ends_at or self._rounds.is_stopping):
                await self._give_back(scope, items[position:])
                break
            try:
                total += await self._one(scope, item)
            except (IndexUnavailable, asyncio.CancelledError):
                await asyncio.shield(self._give_back(scope, items[position:]))
                raise
        return total

    async def _one(self, scope: TenantScope, item: OutboxItem) -> Reconciled:
        """Raises StoreUnavailable, and IndexUnavailable for an index that does not answer at all."""
        if item.attempts > self._parts.settings.outbox_max_attempts and _may_be_put_aside(item):
            return await self._failed(scope, item, NEVER_ENDED)
        try:
            await reach_async("after-claim")
            await self._do(scope, item)
        except FenceLost:
            return Reconciled()
        except Erased:
            await self._parts.database.work(scope, lambda tx: outbox.complete(tx, item))
            return Reconciled(completed=1)
        except StoreUnavailable:
            raise
        except StorageFull:  # no fault of this work; what takes away goes on meanwhile
            await self._give_back(scope, [item], timedelta(seconds=FULL_PAUSE_S))
            return Reconciled()
        except IndexUnavailable as error:
            await self._parts.index.check()
            return await self._failed(scope, item, error.slug)
        except Exception as error:  # kept with its work and counted: one that nobody foresaw must not end the work of all others
            return await self._failed(scope, item, error.slug if isinstance(error, CoatcheckError) else type(error).__name__)
        return Reconciled(completed=1)

    async def _do(self, scope: TenantScope, item: OutboxItem) -> None:
        match item.kind:
            case OutboxKind.ERASE if self._eraser.is_under_way(item):
                await self._give_back(scope, [item])
                raise FenceLost
            case OutboxKind.ERASE:
                await self._eraser.erase(scope, item)
            case OutboxKind.SWEEP:
                await self._sweep(scope, item)
            case OutboxKind.ACL:
                await self._acl(scope, item)
            case OutboxKind.UPSERT if item.manifest_id is not None:
                await self._run(scope, item, item.manifest_id)
            case OutboxKind.UPSERT:
                await self._segments(scope, item)

    async def _run(self, scope: TenantScope, item: OutboxItem, manifest_id: UUID) -> None:
        """A run that was persisted and not acknowledged is finished under its own lease; the outbox row goes with it."""
        now = self._parts.clock()
        until = now + timedelta(seconds=self._parts.settings.lease_s)
        run = await self._parts.database.work(scope, lambda tx: runs.find(tx, manifest_id))
        if run is None or run.erased:
            raise Erased
        if run.status is RunStatus.ACKNOWLEDGED:
            await self._segments(scope, item)
            return
        lease = await self._parts.database.work(
            scope, lambda tx: run_leases.take_over(tx, manifest_id, self._parts.owner, now, until)
        )
        if lease is None:
            raise FenceLost
        await self._finisher.finish(scope, run, lease)

    async def _segments(self, scope: TenantScope, item: OutboxItem) -> None:
        """Projects what the item names again: one segment, or all of an acknowledged run."""
        shas = await self._parts.database.work(scope, lambda tx: _named(tx, item))
        await self._projector.project(scope, item.session_id, shas, item=item)
        await self._parts.database.work(scope, lambda tx: outbox.complete(tx, item))

    async def _acl(self, scope: TenantScope, item: OutboxItem) -> None:
        """The acl is read after the claim, so that the last of several changes wins whatever their order, and does for all."""

        async def last(tx: WorkerTransaction) -> Session | None:
            await outbox.forget_same(tx, item)
            return await sessions.find_any(tx, item.session_id)

        session = await self._parts.database.work(scope, last)
        if session is None or session.erased_at is not None:
            raise Erased
        await self._parts.index.set_acl(scope, item.session_id, session.acl)
        await self._parts.index.flush()

        async def complete(tx: WorkerTransaction) -> None:
            now = await sessions.find_any(tx, item.session_id)
            if now is not None and now.acl != session.acl:
                await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.ACL, item.session_id)
            await outbox.complete(tx, item)

        await self._parts.database.work(scope, complete)

    async def _sweep(self, scope: TenantScope, item: OutboxItem) -> None:
        session = await self._parts.database.work(scope, lambda tx: sessions.find_any(tx, item.session_id))
        if session is None or session.erased_at is not None:
            await self._parts.index.delete_session(scope, item.session_id)
        else:
            await self._remove_orphans(scope, item.session_id)
        await self._parts.index.flush()
        await self._parts.database.work(scope, lambda tx: outbox.complete(tx, item))

    async def _remove_orphans(self, scope: TenantScope, session_id: UUID) -> None:
        """Points of no living run. Not those without a projection's row: what was written last has none yet."""
        async for page in self._parts.index.scroll():
            mine = [p for p in page if p.tenant_id == scope.tenant_id and p.session_id == session_id]
            if mine:
                shas = list({point.exact_sha256 for point in mine})
                held = await self._parts.database.work(
                    scope,
                    lambda tx, shas=shas: entries.held(tx, session_id, shas),  # type: ignore[misc]
                )
                orphans = [(p.exact_sha256, p.point_id) for p in mine if p.exact_sha256 not in held]
                await self._projector.remove_points(scope, session_id, orphans)

    async def _give_back(self, scope: TenantScope, items: Sequence[OutboxItem], pause: timedelta = timedelta(0)) -> None:
        """The index is out, the disk is full, or this process goes down: what was claimed was not tried."""
        due = self._parts.clock() + pause
        with contextlib.suppress(StoreUnavailable):
            await self._parts.database.work(scope, lambda tx: outbox.give_back(tx, items, due))

    async def _failed(self, scope: TenantScope, item: OutboxItem, problem: str) -> Reconciled:
        quarantine = item.attempts >= self._parts.settings.outbox_max_attempts and _may_be_put_aside(item)
        backoff_s = min(MAX_BACKOFF_S, self._parts.settings.reconcile_interval_s * 2 ** min(item.attempts - 1, MAX_DOUBLINGS))
        due = self._parts.clock() + timedelta(seconds=backoff_s)
        became = await self._parts.database.work(scope, lambda tx: outbox.fail(tx, item, problem, due, quarantine))
        log.warning("outbox.failed", kind=item.kind.value, item_id=str(item.item_id), attempts=item.attempts, problem=problem)
        return Reconciled(failed=1, quarantined=int(became is Failed.PUT_ASIDE))


def _may_be_put_aside(item: OutboxItem) -> bool:
    """What was erased goes, however long that takes."""
    return item.kind not in (OutboxKind.ERASE, OutboxKind.SWEEP)


async def _named(tx: WorkerTransaction, item: OutboxItem) -> list[str]:
    if item.segment_sha256 is not None:
        return [item.segment_sha256]
    assert item.manifest_id is not None
    return await entries.segments_of(tx, item.manifest_id)
