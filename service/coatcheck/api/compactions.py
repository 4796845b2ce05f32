"""``POST /v1/compactions``: hand in a window, get a handoff."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from coatcheck.api.dependencies import Caller, Deadline, IdempotencyKey, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer
from coatcheck.domain.errors import (
    EmptyWindow,
    Erased,
    IdempotencyConflict,
    IndexUnavailable,
    InProgress,
    InvalidWindow,
    NoProgress,
    NotFound,
    ProjectionPending,
    QuotaExceeded,
    RedactionFailed,
    RedactionTooCostly,
    StageUnavailable,
    StorageFull,
    VisibilityConflict,
)
from coatcheck.memory.compact import CompactionCommand
from coatcheck_client.wire import CompactionRequest, CompactionResponse

router = APIRouter(tags=["compaction"])


@router.post(
    "/v1/compactions",
    status_code=201,
    response_model=CompactionResponse,
    responses={
        200: {"model": CompactionResponse, "description": "A completed duplicate: the same body."},
        **problems(
            NotFound, InProgress, VisibilityConflict, Erased, InvalidWindow, EmptyWindow, NoProgress, IdempotencyConflict,
            QuotaExceeded, ProjectionPending, IndexUnavailable, StageUnavailable, RedactionFailed, RedactionTooCostly, StorageFull,
        ),
    },
    openapi_extra=takes(CompactionRequest, with_key=True),
)  # fmt: skip
async def compact(
    caller: Caller,
    use_cases: UseCases,
    deadline_s: Deadline,
    idempotency_key: IdempotencyKey,
    body: Annotated[CompactionRequest, Depends(body_of(CompactionRequest))],
) -> Response:
    """Keeps the window exactly, outside the prompt, and gives the handoff that stands in its place."""
    compacted = await use_cases.compact(caller, CompactionCommand(body, idempotency_key, deadline_s))
    return answer(compacted.response, 201 if compacted.created else 200)
