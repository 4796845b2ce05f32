"""``/v1/admin/retention``: for how long sessions are kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from coatcheck.api.dependencies import Caller, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer
from coatcheck_client.wire import RetentionPolicy

router = APIRouter(tags=["administration"])


@router.get("/v1/admin/retention", response_model=RetentionPolicy, responses=problems())
async def get_retention(caller: Caller, use_cases: UseCases) -> Response:
    """The most days that a session is kept after the last thing was added to it, by kind; null is until it is erased."""
    return answer(await use_cases.retention.policy(caller))


@router.put("/v1/admin/retention", response_model=RetentionPolicy, responses=problems(), openapi_extra=takes(RetentionPolicy))
async def set_retention(
    caller: Caller, use_cases: UseCases, body: Annotated[RetentionPolicy, Depends(body_of(RetentionPolicy))]
) -> Response:
    """Sets all of it. What has had its time then is erased by the worker, with a receipt."""
    return answer(await use_cases.retention.change(caller, body))
