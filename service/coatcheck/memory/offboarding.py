"""The end of a tenant: its credentials at once, then everything of it in the index and in the tables, then its name is free.

    one transaction: receipt begun, audit, the tenant's status     -> nobody of it is let in any more
    journal (fsync) -> points -> rows -> receipt completed -> the tenant's row

A crash anywhere leaves the status, and the worker of the next start goes on; every step may be done twice.
"""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

from coatcheck.domain.errors import ErasePending, Forbidden, IndexUnavailable, StoreUnavailable
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory import receipts
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.jobs import Jobs
from coatcheck.memory.journal import JournalLine
from coatcheck.memory.receipts import Cause, Receipts
from coatcheck.ops.faults import reach_async
from coatcheck.store import audit, directory, erasures, offboarding, sessions
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.directory import Tenant
from coatcheck_client.wire import ErasureOut

SESSIONS_AT_ONCE = 20
WORK_ENDS_WITHIN_S = 3.0
"""How long an off-boarding waits for work that began before it. A worker's lease mostly ends in milliseconds."""
WORK_POLL_S = 0.05


class Offboarding:
    """The use case behind ``DELETE /v1/admin/tenants/{id}``, and the worker's part of it."""

    def __init__(self, parts: Collaborators, jobs: Jobs) -> None:
        self._parts = parts
        self._jobs = jobs

    async def erase(self, context: RequestContext, tenant_id: UUID) -> ErasureOut:
        """Returns the receipt when nothing is left; the same again for a tenant that is erased already.

        Raises ErasePending when the rest follows by itself, NotFound, and Forbidden for the caller's own tenant.
        """
        context.require_for_tenant(Operation.TENANTS)
        if tenant_id == context.tenant_id:
            raise Forbidden("A tenant is off-boarded with another tenant's key, never with its own.")
        tenant = await self._tenant(tenant_id)
        if tenant is None:
            return await Receipts(self._parts).of_target(context, "tenant", tenant_id)

        async def mark(tx: WorkerTransaction) -> None:
            cause = Cause(context.principal_id, "off-boarding")
            erasure_id = await receipts.begin(self._parts, tx, "tenant", tenant_id, cause, self._parts.clock(), {})
            if await offboarding.begin(tx, tenant_id, erasure_id):
                await audit.record(tx, self._parts.new_id(), context.actor, "tenant.erase", "tenant", str(tenant_id))

        await self._parts.database.work(context.tenant_scope, mark)
        await reach_async("after-tenant-suspended")
        try:
            await self.finish(tenant_id)
        except (IndexUnavailable, StoreUnavailable, OSError) as error:
            raise ErasePending from error
        return await Receipts(self._parts).of_target(context, "tenant", tenant_id)

    async def again(self, tenant_id: UUID) -> None:
        """After a restored backup, which knows the tenant still: its end, on the journal's word."""
        scope = tenant_scope(tenant_id)
        await self._parts.database.work(scope, lambda tx: offboarding.begin(tx, tenant_id, None))
        await self.finish(tenant_id)

    async def finish(self, tenant_id: UUID) -> None:
        """Goes on from wherever it stands. Raises ErasePending while somebody works on what is the tenant's."""
        tenant = await self._tenant(tenant_id)
        if tenant is None or tenant.status != offboarding.ERASING:
            return
        scope = tenant_scope(tenant_id)
        await self._jobs.end_of(tenant_id)
        await self._count(tenant, scope)
        mac = await self._parts.journal.append(JournalLine(tenant_id, "tenant", tenant_id, tenant_id, self._parts.clock()))
        await reach_async("after-tenant-journal")
        await self._end_of_work(scope)
        await self._parts.index.delete_tenant(scope)
        await self._parts.index.flush()
        await reach_async("after-tenant-points")
        await self._rows(scope)
        if tenant.erasure_tenant_id is not None:
            await self._parts.database.work(
                tenant_scope(tenant.erasure_tenant_id),
                lambda tx: receipts.complete(self._parts, tx, "tenant", tenant_id, mac),
            )
        await reach_async("before-tenant-goes")
        await self._parts.database.work(scope, offboarding.delete_tenant)
        self._parts.limiter.forget(tenant_id)
        self._parts.metrics.erasures.inc()
        self._parts.state.erased = True

    async def _tenant(self, tenant_id: UUID) -> Tenant | None:
        return await self._parts.database.work(tenant_scope(tenant_id), directory.find_tenant)

    async def _count(self, tenant: Tenant, scope: TenantScope) -> None:
        """Once, before anything goes."""
        asked_by, erasure_id = tenant.erasure_tenant_id, tenant.erasure_id
        if asked_by is None or erasure_id is None:
            return
        counted = await self._parts.database.work(scope, offboarding.counts)
        await self._parts.database.work(tenant_scope(asked_by), lambda tx: erasures.note_counts(tx, erasure_id, counted))

    async def _end_of_work(self, scope: TenantScope) -> None:
        deadline = time.monotonic() + WORK_ENDS_WITHIN_S
        while await self._parts.database.work(scope, lambda tx: offboarding.is_worked_on(tx, self._parts.clock())):
            if time.monotonic() > deadline:
                raise ErasePending
            await asyncio.sleep(WORK_POLL_S)

    async def _rows(self, scope: TenantScope) -> None:
        while found := await self._parts.database.work(scope, lambda tx: offboarding.some_sessions(tx, SESSIONS_AT_ONCE)):
            for session_id in found:
                await self._parts.database.work(scope, lambda tx, session_id=session_id: _delete(tx, session_id))  # type: ignore[misc]
        await self._parts.database.work(scope, offboarding.delete_rows)


async def _delete(tx: WorkerTransaction, session_id: UUID) -> None:
    await sessions.lock(tx, session_id)
    await sessions.delete(tx, session_id)
    await reach_async("inside-tenant-rows")
