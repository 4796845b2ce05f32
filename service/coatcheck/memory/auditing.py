"""The audit: who did what to which id in this tenant, newest first."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.pages import page_of
from coatcheck.store import audit
from coatcheck.store.audit import AuditRow, Wanted
from coatcheck.store.database import WorkerTransaction
from coatcheck_client.wire import AuditOut, AuditPage


class Audit:
    """The use case behind ``/v1/admin/audit``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(
        self,
        context: RequestContext,
        principal_id: UUID | None,
        action: str | None,
        since: datetime | None,
        page_size: int,
        page_token: str | None,
    ) -> AuditPage:
        """What was done: by one principal, of one action or kind of them, from a time on, where given."""
        context.require_for_tenant(Operation.AUDIT)
        wanted = Wanted(principal_id, action, since)

        async def before(tx: WorkerTransaction, position: str | None, limit: int) -> list[AuditRow]:
            return await audit.newest(tx, wanted, UUID(position) if position else None, limit)

        listing = f"audit {principal_id or ''} {action or ''} {since.isoformat() if since else ''}".rstrip()
        rows, token = await page_of(self._parts, context, listing, page_size, page_token, before, lambda row: str(row.audit_id))
        return AuditPage(records=[_out(row) for row in rows], next_page_token=token)


def _out(row: AuditRow) -> AuditOut:
    return AuditOut(
        audit_id=row.audit_id,
        principal_id=row.principal_id,
        delegation_id=row.delegation_id,
        action=row.action,
        target_kind=row.target_kind,
        target_id=row.target_id,
        occurred_at=row.occurred_at,
    )
