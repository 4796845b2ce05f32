"""What handlers ask for: the caller, the use cases, the deadline, and bodies read our way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar, cast
from uuid import UUID

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ValidationError

from coatcheck.api import headers
from coatcheck.api.asked import asked_of
from coatcheck.api.gate import Gate
from coatcheck.api.validation import invalid_body
from coatcheck.domain import canonical
from coatcheck.domain.errors import MalformedJson, Unauthenticated
from coatcheck.identity.context import RequestContext
from coatcheck.identity.cursor import MAX_TOKEN_CHARS
from coatcheck.memory.services import Services

Body = TypeVar("Body", bound=BaseModel)
T = TypeVar("T")

THREAD_FROM_BYTES = 256 * 1024
"""Bodies from this size on are parsed beside the loop: 32 MiB take about a second."""


async def _caller(request: Request) -> RequestContext:
    context = asked_of(request.scope).context
    if context is None:
        raise Unauthenticated
    return context


async def _services(request: Request) -> Services:
    return cast(Services, request.app.state.services)


async def _deadline_s(request: Request) -> float:
    return asked_of(request.scope).deadline_s


async def _idempotency_key(request: Request) -> str | None:
    return headers.idempotency_key(request.scope["headers"])


def body_of(model: type[Body], *, optional: bool = False) -> Callable[[Request], Awaitable[Body]]:
    """A dependency that reads a JSON body strictly (duplicate keys are refused) and checks it against a wire model.

    The raw bytes are read by ``canonical.parse``: what the model leaves as it is (messages) keeps key order, exact integers
    and lone surrogates. Optional: no body at all is the model with its defaults.
    """

    async def read(request: Request) -> Body:
        raw = await request.body()
        if optional and not raw.strip():
            return model()
        if len(raw) < THREAD_FROM_BYTES:
            return parse_body(model, raw)
        return await beside_the_loop(request, lambda: parse_body(model, raw))

    return read


async def beside_the_loop(request: Request, work: Callable[[], T]) -> T:
    """In a thread, when it is the turn of the caller's tenant: one that sends many large bodies keeps nobody else's waiting."""
    gate: Gate = request.app.state.gate
    return await gate.parsing.in_thread((await _caller(request)).tenant_id, work)


def parse_body(model: type[Body], raw: bytes) -> Body:
    """Raises MalformedJson and InvalidRequest."""
    if not raw.strip():
        raise MalformedJson("The request has no body.")
    value = canonical.parse(raw)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # From None: the cause holds the input, and a logged traceback would not.
        raise invalid_body(model, error.errors(include_url=False, include_input=False)) from None


Caller = Annotated[RequestContext, Depends(_caller)]
UseCases = Annotated[Services, Depends(_services)]
Deadline = Annotated[float, Depends(_deadline_s)]
IdempotencyKey = Annotated[str | None, Depends(_idempotency_key)]
PageSize = Annotated[int, Query(ge=1, le=200, description="How many items a page has.")]
PageToken = Annotated[
    str | None, Query(max_length=MAX_TOKEN_CHARS, description="``next_page_token`` of the page before. It serves this list alone.")
]
ManifestId = Annotated[UUID, Path()]
SessionId = Annotated[UUID, Path()]
