"""``/v1/cache``: the response cache for agent frameworks."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Response

from coatcheck.api.dependencies import Caller, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer
from coatcheck.domain.errors import Erased, NotFound
from coatcheck_client.wire import CacheLookup, CacheLookupOut, CachePurge, CachePurgeOut, CacheStatsOut, CacheStore, CacheStoreOut

router = APIRouter(tags=["cache"])


@router.post(
    "/v1/cache/lookup", response_model=CacheLookupOut, responses=problems(NotFound, Erased), openapi_extra=takes(CacheLookup)
)
async def lookup_answer(
    caller: Caller, use_cases: UseCases, body: Annotated[CacheLookup, Depends(body_of(CacheLookup))]
) -> Response:
    """An answer that this caller may reuse under these circumstances, or why there is none."""
    return answer(await use_cases.cache_lookup(caller, body))


@router.post("/v1/cache/store", response_model=CacheStoreOut, responses=problems(NotFound, Erased), openapi_extra=takes(CacheStore))
async def store_answer(caller: Caller, use_cases: UseCases, body: Annotated[CacheStore, Depends(body_of(CacheStore))]) -> Response:
    """Keeps an answer for whoever asks in the scope that its look-up named; or says why not."""
    return answer(await use_cases.cache_store(caller, body))


@router.get("/v1/cache", response_model=CacheStatsOut, responses=problems())
async def cache_figures(
    caller: Caller,
    use_cases: UseCases,
    whose: Annotated[Literal["own", "tenant"], Query(description="The caller's own answers, or to an operator all.")] = "own",
) -> Response:
    """Whether the cache is on, and what it holds."""
    return answer(await use_cases.cache_stats(caller, whose == "tenant"))


@router.post("/v1/cache/purge", response_model=CachePurgeOut, responses=problems(NotFound, Erased), openapi_extra=takes(CachePurge))
async def purge_answers(caller: Caller, use_cases: UseCases, body: Annotated[CachePurge, Depends(body_of(CachePurge))]) -> Response:
    """Takes answers out of the cache: the caller's own, or as an operator a principal's or the tenant's."""
    return answer(await use_cases.cache_purge(caller, body))
