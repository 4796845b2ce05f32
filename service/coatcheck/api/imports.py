"""``POST /v1/import``: what an export gave, line by line, however long it is."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter, Request, Response
from starlette.requests import ClientDisconnect

from coatcheck.api.dependencies import Caller, UseCases
from coatcheck.api.documented import problems, takes_lines
from coatcheck.api.responses import answer
from coatcheck.domain.errors import (
    Erased,
    IndexUnavailable,
    NotFound,
    ProjectionPending,
    QuotaExceeded,
    RequestTimeout,
    StorageFull,
    TooLarge,
)
from coatcheck_client.wire import ImportResponse

router = APIRouter(tags=["sessions"])

MAX_LINE_BYTES = 128 * 1024 * 1024
"""One line is a whole window, escaped: the use case sets the finer limit, this one bounds memory."""


@router.post(
    "/v1/import",
    response_model=ImportResponse,
    responses=problems(NotFound, Erased, QuotaExceeded, ProjectionPending, IndexUnavailable, StorageFull),
    openapi_extra=takes_lines(),
)
async def import_sessions(caller: Caller, use_cases: UseCases, request: Request) -> Response:
    """Stores exported sessions: redacted again, hashes verified, ids kept where they are free."""
    try:
        return answer(await use_cases.import_lines(caller, lines_of(request.stream())))
    except ClientDisconnect as error:
        raise RequestTimeout("The import broke off; what was stored stands, and the same import goes on from there.") from error


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a stream, without their ends; empty ones are left out. Raises TooLarge."""
    pending: list[bytes] = []
    size = 0
    async for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        for part in (first, *rest[:-1]) if rest else ():
            line = b"".join((*pending, part))
            pending, size = [], 0
            if line.strip():
                yield line
        tail = rest[-1] if rest else first
        pending.append(tail)
        size += len(tail)
        if size > MAX_LINE_BYTES:
            raise TooLarge(f"A line of the import has more than the {MAX_LINE_BYTES:,} bytes that are taken.")
    last = b"".join(pending)
    if last.strip():
        yield last
