"""``/v1/admin/audit``: who did what."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime

from coatcheck.api.dependencies import Caller, PageSize, PageToken, UseCases
from coatcheck.api.documented import problems
from coatcheck.api.responses import answer
from coatcheck_client.wire import AuditPage

router = APIRouter(tags=["administration"])

OfAction = Annotated[
    str | None,
    Query(
        description="Only this action (`session.export`), or all that begin with it and a dot (`session`).",
        pattern=r"^[a-z-]+(\.[a-z-]+)*$",
        max_length=100,
    ),
]
Since = Annotated[AwareDatetime | None, Query(description="Only what was done from this time on.")]
ByPrincipal = Annotated[UUID | None, Query(description="Only what this principal did.")]


@router.get("/v1/admin/audit", response_model=AuditPage, responses=problems())
async def list_audit(
    caller: Caller,
    use_cases: UseCases,
    principal: ByPrincipal = None,
    action: OfAction = None,
    since: Since = None,
    page_size: PageSize = 50,
    page_token: PageToken = None,
) -> Response:
    """What was done in the tenant, newest first: ids, never content."""
    return answer(await use_cases.audit.page(caller, principal, action, since, page_size, page_token))
