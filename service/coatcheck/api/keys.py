"""``/v1/admin/keys``: who may ask at all."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Response

from coatcheck.api.dependencies import Caller, PageSize, PageToken, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer, no_content
from coatcheck.domain.errors import NotFound
from coatcheck_client.wire import KeyCreate, KeyOut, KeyPage

router = APIRouter(tags=["administration"])

KeyId = Annotated[UUID, Path()]


@router.get("/v1/admin/keys", response_model=KeyPage, responses=problems())
async def list_keys(caller: Caller, use_cases: UseCases, page_size: PageSize = 50, page_token: PageToken = None) -> Response:
    """The tenant's keys, without their secrets."""
    return answer(await use_cases.keys.page(caller, page_size, page_token))


@router.post("/v1/admin/keys", status_code=201, response_model=KeyOut, responses=problems(NotFound), openapi_extra=takes(KeyCreate))
async def create_key(caller: Caller, use_cases: UseCases, body: Annotated[KeyCreate, Depends(body_of(KeyCreate))]) -> Response:
    """Makes a key, which never grants more than its maker holds. It is shown this once."""
    return answer(await use_cases.keys.create(caller, body), 201)


@router.post("/v1/admin/keys/{key_id}/rotate", status_code=201, response_model=KeyOut, responses=problems(NotFound))
async def rotate_key(caller: Caller, use_cases: UseCases, key_id: KeyId) -> Response:
    """A new key with the same rights; the old one counts no more."""
    return answer(await use_cases.keys.rotate(caller, key_id), 201)


@router.delete("/v1/admin/keys/{key_id}", status_code=204, response_class=Response, responses=problems(NotFound))
async def revoke_key(caller: Caller, use_cases: UseCases, key_id: KeyId) -> Response:
    """The key counts no more from the next request on."""
    await use_cases.keys.revoke(caller, key_id)
    return no_content()
