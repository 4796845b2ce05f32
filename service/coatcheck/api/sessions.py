"""``/v1/sessions``: list, look at, share, erase and take out whole conversations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from coatcheck.api.dependencies import Caller, PageSize, PageToken, SessionId, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.erasures import ERASED, WithReceipt, erased
from coatcheck.api.responses import Ndjson, answer
from coatcheck.domain.errors import Erased, ErasePending, NotFound
from coatcheck_client.wire import SessionName, SessionOut, SessionPage, SessionPatch

router = APIRouter(tags=["sessions"])

OwnName = Annotated[
    SessionName | None, Query(description="Only the caller's own session of this name; others' are named by their ids.")
]


@router.get("/v1/sessions", response_model=SessionPage, responses=problems())
async def list_sessions(
    caller: Caller, use_cases: UseCases, page_size: PageSize = 50, page_token: PageToken = None, name: OwnName = None
) -> Response:
    """The sessions that the caller may read, newest first; by name only the caller's own of that name."""
    return answer(await use_cases.sessions(caller, page_size, page_token, name))


@router.get("/v1/sessions/{session_id}", response_model=SessionOut, responses=problems(NotFound, Erased))
async def get_session(caller: Caller, use_cases: UseCases, session_id: SessionId) -> Response:
    return answer(await use_cases.session(caller, session_id))


@router.patch(
    "/v1/sessions/{session_id}",
    response_model=SessionOut,
    responses=problems(NotFound, Erased),
    openapi_extra=takes(SessionPatch),
)
async def change_session(
    caller: Caller,
    use_cases: UseCases,
    session_id: SessionId,
    body: Annotated[SessionPatch, Depends(body_of(SessionPatch))],
) -> Response:
    """Changes who may read the session; narrowing counts at once."""
    return answer(await use_cases.patch_session(caller, session_id, body))


@router.delete(
    "/v1/sessions/{session_id}",
    status_code=204,
    response_class=Response,
    responses=ERASED | problems(NotFound, Erased, ErasePending),
)
async def erase_session(caller: Caller, use_cases: UseCases, session_id: SessionId, receipt: WithReceipt = False) -> Response:
    """Erases the session and everything derived from it; answers once nothing is left."""
    return await erased(caller, use_cases, "session", session_id, receipt)


@router.get(
    "/v1/sessions/{session_id}/export",
    response_class=Response,
    responses={
        200: {
            "description": "One line for the session, one for each run, then an end that counts and hashes them.",
            "content": {"application/x-ndjson": {}},
        },
        **problems(NotFound, Erased),
    },
)
async def export_session(caller: Caller, use_cases: UseCases, session_id: SessionId) -> Response:
    """The session as JSON lines, which ``POST /v1/import`` takes back."""
    return await Ndjson.begin(await use_cases.export_session(caller, session_id))
