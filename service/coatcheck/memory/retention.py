"""Retention: for how long sessions are kept, by kind; what has had its time is erased as if its owner had asked for it."""

from __future__ import annotations

from uuid import UUID

from coatcheck.domain.actors import THE_SERVICE
from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.forget import mark_session
from coatcheck.memory.receipts import Cause
from coatcheck.store import audit, outbox, retention, sessions
from coatcheck.store.database import WorkerTransaction
from coatcheck_client.wire import RetentionPolicy

AT_ONCE = 20
"""Sessions of one tenant that a turn marks; the rest has its turn the next time."""


class Retention:
    """The use cases behind ``/v1/admin/retention``, and the worker's part of them."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def policy(self, context: RequestContext) -> RetentionPolicy:
        context.require_for_tenant(Operation.RETENTION)
        return RetentionPolicy(**await self._parts.database.work(context.tenant_scope, retention.find))

    async def change(self, context: RequestContext, asked: RetentionPolicy) -> RetentionPolicy:
        """Sets all of it. Takes effect with the worker's next turn."""
        context.require_for_tenant(Operation.RETENTION)
        days = {kind: most for kind, most in asked.model_dump().items() if most is not None}

        async def work(tx: WorkerTransaction) -> dict[str, int]:
            await retention.change(tx, days, self._parts.clock())
            await audit.record(tx, self._parts.new_id(), context.actor, "retention.change", "tenant", str(context.tenant_id))
            return await retention.find(tx)

        return RetentionPolicy(**await self._parts.database.work(context.tenant_scope, work))

    async def apply(self, scope: TenantScope) -> int:
        """Marks what has had its time, as its owner would: unreachable with that, and the reconciler does the rest.

        Returns how many.
        """
        now = self._parts.clock()
        found = await self._parts.database.work(scope, lambda tx: retention.due(tx, now, AT_ONCE))
        marked = [await self._expire(scope, session_id) for session_id in found]
        return sum(marked)

    async def _expire(self, scope: TenantScope, session_id: UUID) -> bool:
        async def work(tx: WorkerTransaction) -> bool:
            now = self._parts.clock()
            await sessions.lock(tx, session_id)
            # Somebody may have added to it, or changed its kind or the policy, since it was found.
            if not await retention.is_due(tx, session_id, now):
                return False
            marked = await sessions.mark_erased(tx, session_id, now)
            if marked is None:
                return False
            await mark_session(self._parts, tx, marked, now, Cause(None, "retention"))
            await audit.record(tx, self._parts.new_id(), THE_SERVICE, "session.expire", "session", str(session_id))
            await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.ERASE, session_id)
            return True

        return await self._parts.database.work(scope, work)
