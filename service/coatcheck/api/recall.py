"""``POST /v1/recall``: exact texts by meaning."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from coatcheck.api.dependencies import Caller, Deadline, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer
from coatcheck.domain.errors import Erased, IndexUnavailable, NotFound, Overloaded, StageUnavailable
from coatcheck.identity.context import RequestContext
from coatcheck.memory.services import Services
from coatcheck_client.wire import RecallRequest, RecallResponse

router = APIRouter(tags=["recall"])


@router.post(
    "/v1/recall",
    response_model=RecallResponse,
    responses=problems(NotFound, Erased, IndexUnavailable, StageUnavailable),
    openapi_extra=takes(RecallRequest),
)
async def recall(
    caller: Caller,
    use_cases: UseCases,
    deadline_s: Deadline,
    body: Annotated[RecallRequest, Depends(body_of(RecallRequest))],
) -> Response:
    """Searches what the caller may read; every hit was verified against the database."""
    return answer(await recall_in_time(use_cases, caller, body, deadline_s))


async def recall_in_time(use_cases: Services, caller: RequestContext, asked: RecallRequest, deadline_s: float) -> RecallResponse:
    """The recall, or Overloaded when the deadline passes first."""
    try:
        async with asyncio.timeout(deadline_s):
            return await use_cases.recall(caller, asked, deadline_s)
    except TimeoutError as error:
        raise Overloaded("The deadline passed before the recall was done.") from error
