"""``/v1/delegations``: what a caller hands to its agents."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Response

from coatcheck.api.dependencies import Caller, PageSize, PageToken, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer, no_content
from coatcheck.domain.errors import NotFound
from coatcheck_client.wire import DelegationCreate, DelegationOut, DelegationPage

router = APIRouter(tags=["delegations"])

DelegationId = Annotated[UUID, Path()]


@router.get("/v1/delegations", response_model=DelegationPage, responses=problems())
async def list_delegations(caller: Caller, use_cases: UseCases, page_size: PageSize = 50, page_token: PageToken = None) -> Response:
    """The caller's own; a delegate sees those that it has made."""
    return answer(await use_cases.delegations.page(caller, page_size, page_token))


@router.post(
    "/v1/delegations",
    status_code=201,
    response_model=DelegationOut,
    responses=problems(NotFound),
    openapi_extra=takes(DelegationCreate),
)
async def create_delegation(
    caller: Caller, use_cases: UseCases, body: Annotated[DelegationCreate, Depends(body_of(DelegationCreate))]
) -> Response:
    """Makes a credential that does less than the caller's own, for a day at most. It is shown this once."""
    return answer(await use_cases.delegations.create(caller, body), 201)


@router.delete("/v1/delegations/{delegation_id}", status_code=204, response_class=Response, responses=problems(NotFound))
async def revoke_delegation(caller: Caller, use_cases: UseCases, delegation_id: DelegationId) -> Response:
    """Neither it nor what was made with it counts from the next request on."""
    await use_cases.delegations.revoke(caller, delegation_id)
    return no_content()
