"""``/v1/manifests``: one run, its entries in the window's order, and the window itself."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from coatcheck.api.dependencies import Caller, ManifestId, PageSize, PageToken, UseCases
from coatcheck.api.documented import problems
from coatcheck.api.erasures import ERASED, WithReceipt, erased
from coatcheck.api.responses import answer
from coatcheck.domain.errors import Erased, ErasePending, NotFound
from coatcheck_client.wire import EntryPage, ManifestOut, WindowOut

router = APIRouter(tags=["reading"])


@router.get("/v1/manifests/{manifest_id}", response_model=ManifestOut, responses=problems(NotFound, Erased))
async def get_manifest(caller: Caller, use_cases: UseCases, manifest_id: ManifestId) -> Response:
    """The run, its counts, its handoff and its parent."""
    return answer(await use_cases.manifest(caller, manifest_id))


@router.get("/v1/manifests/{manifest_id}/entries", response_model=EntryPage, responses=problems(NotFound, Erased))
async def list_entries(
    caller: Caller,
    use_cases: UseCases,
    manifest_id: ManifestId,
    page_size: PageSize = 50,
    page_token: PageToken = None,
    text: Annotated[bool, Query(description="Whether each entry brings its text.")] = False,
) -> Response:
    """The entries in the window's order, with route, reason and hashes."""
    return answer(await use_cases.entries(caller, manifest_id, page_size, page_token, text))


@router.get("/v1/manifests/{manifest_id}/window", response_model=WindowOut, responses=problems(NotFound, Erased))
async def get_window(caller: Caller, use_cases: UseCases, manifest_id: ManifestId) -> Response:
    """The redacted window, rebuilt in the format it came in; dropped text is marked."""
    return answer(await use_cases.window(caller, manifest_id))


@router.delete(
    "/v1/manifests/{manifest_id}",
    status_code=204,
    response_class=Response,
    responses=ERASED | problems(NotFound, Erased, ErasePending),
)
async def erase_manifest(caller: Caller, use_cases: UseCases, manifest_id: ManifestId, receipt: WithReceipt = False) -> Response:
    """Erases the run and what is its alone; answers once nothing is left."""
    return await erased(caller, use_cases, "manifest", manifest_id, receipt)
