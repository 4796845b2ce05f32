"""``/v1/admin/tenants``: the installation's tenants, what each may take, and a tenant's end."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Response

from coatcheck.api.dependencies import Caller, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer
from coatcheck.domain.errors import ErasePending, NotFound
from coatcheck_client.wire import ErasureOut, TenantCreate, TenantLimits, TenantLimitsOut, TenantOut, TenantPage

router = APIRouter(tags=["administration"])

TenantId = Annotated[UUID, Path()]
LIMITS = "/v1/admin/tenants/{tenant_id}/limits"


@router.get("/v1/admin/tenants", response_model=TenantPage, responses=problems())
async def list_tenants(caller: Caller, use_cases: UseCases) -> Response:
    return answer(await use_cases.tenants.page(caller))


@router.post(
    "/v1/admin/tenants", status_code=201, response_model=TenantOut, responses=problems(), openapi_extra=takes(TenantCreate)
)
async def create_tenant(
    caller: Caller, use_cases: UseCases, body: Annotated[TenantCreate, Depends(body_of(TenantCreate))]
) -> Response:
    """Makes a tenant with its first operator, whose key is shown this once."""
    return answer(await use_cases.tenants.create(caller, body), 201)


@router.delete("/v1/admin/tenants/{tenant_id}", response_model=ErasureOut, responses=problems(NotFound, ErasePending))
async def erase_tenant(caller: Caller, use_cases: UseCases, tenant_id: TenantId) -> Response:
    """Off-boards a tenant: its credentials count no more at once; answers with the receipt once nothing of it is left."""
    return answer(await use_cases.erase_tenant(caller, tenant_id))


@router.get(LIMITS, response_model=TenantLimitsOut, responses=problems(NotFound))
async def get_tenant_limits(caller: Caller, use_cases: UseCases, tenant_id: TenantId) -> Response:
    """A tenant's own limits, what counts with the installation's defaults, and what the tenant has stored."""
    return answer(await use_cases.tenant_limits.one(caller, tenant_id))


@router.put(LIMITS, response_model=TenantLimitsOut, responses=problems(NotFound), openapi_extra=takes(TenantLimits))
async def set_tenant_limits(
    caller: Caller, use_cases: UseCases, tenant_id: TenantId, body: Annotated[TenantLimits, Depends(body_of(TenantLimits))]
) -> Response:
    """Sets all of a tenant's own limits; what is null or left out is the installation's default."""
    return answer(await use_cases.tenant_limits.change(caller, tenant_id, body))
