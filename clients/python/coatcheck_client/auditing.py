"""What an operator asks about who did what. Each function is a flow."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from coatcheck_client.flows import Flow, Send, at_page, read, without_nulls
from coatcheck_client.wire import AuditOut, AuditPage


def audit(
    *,
    principal_id: UUID | str | None = None,
    action: str | None = None,
    since: datetime | None = None,
    limit: int = 100,
) -> Flow[list[AuditOut]]:
    """What was done in the tenant, newest first: the last ``limit`` things.

    Of one principal, of one action (``session.export``) or kind of them (``session``), from a time on, where given.
    """
    found: list[AuditOut] = []
    token: str | None = None
    from_then = since.isoformat() if since is not None else None
    given = without_nulls(principal=principal_id, action=action, since=from_then)
    by = {name: str(value) for name, value in given.items()}
    while len(found) < limit:
        size = {"page_size": str(min(200, limit - len(found)))}
        page = yield from read(Send("GET", "/v1/admin/audit", params={**by, **size, **at_page(token)}), AuditPage)
        found += page.records
        token = page.next_page_token
        if token is None:
            break
    return found
