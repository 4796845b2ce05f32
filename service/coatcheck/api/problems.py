"""Problem details (RFC 9457): every error as ``application/problem+json``, FastAPI's own answers replaced.

Nothing of the request is repeated: FastAPI's 422 would echo the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coatcheck.api.asked import asked_of
from coatcheck.api.responses import AsciiJson
from coatcheck.api.validation import invalid_parameters
from coatcheck.domain.errors import (
    CoatcheckError,
    InvalidRequest,
    MalformedJson,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    Unauthenticated,
)

TYPE_PREFIX = "urn:coatcheck:problem:"
MEDIA_TYPE = "application/problem+json"
DEFAULT_RETRY_AFTER_S = 5


class ProblemResponse(AsciiJson):
    media_type = MEDIA_TYPE


def problem(error: CoatcheckError, request_id: UUID) -> dict[str, object]:
    """The body. ``instance`` names the request in our logs."""
    body: dict[str, object] = {
        "type": TYPE_PREFIX + error.slug,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "instance": f"urn:uuid:{request_id}",
        "retryable": error.retryable,
    }
    if error.errors:
        body["errors"] = [{"pointer": one.pointer, "detail": one.detail} for one in error.errors]
    return body


def respond(error: CoatcheckError, request_id: UUID, headers: Mapping[str, str] | None = None) -> ProblemResponse:
    """The response, with Retry-After where the same request helps and the challenge where a credential is missing."""
    more = dict(headers or {})
    if error.retryable:
        more["Retry-After"] = str(error.retry_after_s or DEFAULT_RETRY_AFTER_S)
    if isinstance(error, Unauthenticated):
        more["WWW-Authenticate"] = "Bearer"
    return ProblemResponse(problem(error, request_id), error.status, headers=more)


def install(app: FastAPI) -> None:
    """Has the app answer every error as a problem."""
    app.add_exception_handler(CoatcheckError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid_parameters)
    app.add_exception_handler(HTTPException, _from_the_framework)
    app.add_exception_handler(RecursionError, _too_deep)
    app.add_exception_handler(Exception, _unexpected)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, CoatcheckError)
    return respond(error, asked_of(request.scope).request_id)


async def _invalid_parameters(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return respond(invalid_parameters(error.errors()), asked_of(request.scope).request_id)


async def _from_the_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    ours: dict[int, type[CoatcheckError]] = {400: MalformedJson, 404: NotFound, 405: MethodNotAllowed, 413: TooLarge}
    fallback = CoatcheckError if error.status_code >= 500 else InvalidRequest
    allow = {name: value for name, value in (error.headers or {}).items() if name.lower() == "allow"}
    return respond(ours.get(error.status_code, fallback)(), asked_of(request.scope).request_id, allow)


async def _too_deep(request: Request, _error: Exception) -> Response:
    return respond(MalformedJson("The JSON is nested too deeply."), asked_of(request.scope).request_id)


async def _unexpected(request: Request, _error: Exception) -> Response:
    # The edge logs it: the framework raises it again once this has been sent.
    return respond(CoatcheckError(), asked_of(request.scope).request_id)
