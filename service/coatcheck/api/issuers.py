"""``/v1/admin/issuers``: whose tokens speak for which tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from coatcheck.api.dependencies import Caller, PageSize, PageToken, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer, no_content
from coatcheck.domain.errors import NotFound
from coatcheck_client.wire import IssuerCreate, IssuerOut, IssuerPage

router = APIRouter(tags=["administration"])

Named = Annotated[str, Query(min_length=1, max_length=500, pattern=r"^[\x21-\x7e]+$", description="The issuer, to the letter.")]


@router.get("/v1/admin/issuers", response_model=IssuerPage, responses=problems())
async def list_issuers(caller: Caller, use_cases: UseCases, page_size: PageSize = 50, page_token: PageToken = None) -> Response:
    """All issuers of the installation."""
    return answer(await use_cases.issuers.page(caller, page_size, page_token))


@router.post(
    "/v1/admin/issuers",
    status_code=201,
    response_model=IssuerOut,
    responses=problems(NotFound),
    openapi_extra=takes(IssuerCreate),
)
async def create_issuer(
    caller: Caller, use_cases: UseCases, body: Annotated[IssuerCreate, Depends(body_of(IssuerCreate))]
) -> Response:
    """Lets an issuer speak for a tenant; its tokens name principals by their subject."""
    return answer(await use_cases.issuers.create(caller, body), 201)


@router.delete("/v1/admin/issuers", status_code=204, response_class=Response, responses=problems(NotFound))
async def delete_issuer(caller: Caller, use_cases: UseCases, issuer: Named) -> Response:
    """Its tokens, and the delegates that they made, count no more from the next request on."""
    await use_cases.issuers.delete(caller, issuer)
    return no_content()
