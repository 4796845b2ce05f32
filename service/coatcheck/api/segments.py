"""``GET /v1/segments/{sha256}``: one exact text by its hash."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from coatcheck.api.dependencies import Caller, UseCases
from coatcheck.api.documented import problems
from coatcheck.api.responses import answer
from coatcheck.domain.errors import Erased, NotFound
from coatcheck_client.wire import SegmentOut

router = APIRouter(tags=["reading"])

Digits = Annotated[
    str,
    Path(
        pattern=r"^[0-9a-f]{12,64}$",
        description="The SHA-256 in lower-case hex, or 12 or more of its first digits where they name one segment.",
    ),
]


@router.get("/v1/segments/{sha256}", response_model=SegmentOut, responses=problems(NotFound, Erased))
async def get_segment(caller: Caller, use_cases: UseCases, sha256: Digits) -> Response:
    """The exact text, and where it stood."""
    return answer(await use_cases.segment(caller, sha256))
