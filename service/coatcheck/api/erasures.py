"""``/v1/erasures``: the receipts of what was erased."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response

from coatcheck.api.dependencies import Caller, UseCases, body_of
from coatcheck.api.documented import Responses, problems, takes
from coatcheck.api.responses import answer
from coatcheck.domain.errors import Erased, NotFound
from coatcheck.identity.context import RequestContext
from coatcheck.memory.services import Services
from coatcheck_client.wire import ErasureOut, ReceiptIn, VerifiedOut

router = APIRouter(tags=["erasures"])

ErasureId = Annotated[UUID, Path()]
WithReceipt = Annotated[
    bool, Query(description="Answer 200 with the erasure's receipt; also once it is erased, then as often as asked.")
]
ERASED: Responses = {
    200: {"description": "The erasure's receipt, where it was asked for.", "model": ErasureOut},
    204: {
        "description": "Erased. Content-Location names the receipt.",
        "headers": {"Content-Location": {"schema": {"type": "string"}}},
    },
}


async def erased(
    caller: RequestContext, use_cases: Services, kind: Literal["session", "manifest"], target_id: UUID, receipt: bool
) -> Response:
    """Erases, and answers with the receipt or with where it is."""
    erase = use_cases.erase_session if kind == "session" else use_cases.erase_manifest
    try:
        erasure_id = await erase(caller, target_id)
    except (Erased, NotFound) as error:
        if not receipt:
            raise
        try:
            return answer(await use_cases.receipts.of_target(caller, kind, target_id))
        except NotFound:
            raise error from None
    if receipt:
        return answer(await use_cases.receipts.one(caller, erasure_id))
    return Response(status_code=204, headers={"Content-Location": f"/v1/erasures/{erasure_id}"})


@router.get("/v1/erasures/{erasure_id}", response_model=ErasureOut, responses=problems(NotFound))
async def get_erasure(caller: Caller, use_cases: UseCases, erasure_id: ErasureId) -> Response:
    """The receipt of an erasure, for those who could have erased it."""
    return answer(await use_cases.receipts.one(caller, erasure_id))


@router.post("/v1/erasures/verify", response_model=VerifiedOut, responses=problems(), openapi_extra=takes(ReceiptIn))
async def verify_receipt(caller: Caller, use_cases: UseCases, body: Annotated[ReceiptIn, Depends(body_of(ReceiptIn))]) -> Response:
    """Whether this service wrote the receipt, as it stands, for the caller's tenant."""
    return answer(await use_cases.receipts.verify(caller, body))
