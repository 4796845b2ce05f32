"""``/v1/admin/scan``, ``repair``, ``reconcile`` and ``redact-rescan``: a POST starts, a GET follows."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Response

from coatcheck.api.dependencies import Caller, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer
from coatcheck.domain.errors import NotFound
from coatcheck.memory.jobs import JobKind
from coatcheck_client.wire import JobOut, RepairRequest, ScanRequest

router = APIRouter(tags=["administration"])

JobId = Annotated[UUID, Path()]
STARTED = problems()
FOLLOWED = problems(NotFound)


@router.post(
    "/v1/admin/scan",
    status_code=202,
    response_model=JobOut,
    responses=STARTED,
    openapi_extra=takes(ScanRequest, required=False),
)
async def start_scan(
    caller: Caller, use_cases: UseCases, body: Annotated[ScanRequest, Depends(body_of(ScanRequest, optional=True))]
) -> Response:
    """Checks every retained text, hash and index point."""
    return _started(await use_cases.start_job(caller, "scan", index=body.index))


@router.get("/v1/admin/scan/{job_id}", response_model=JobOut, responses=FOLLOWED)
async def get_scan(caller: Caller, use_cases: UseCases, job_id: JobId) -> Response:
    return await _followed(caller, use_cases, "scan", job_id)


@router.post(
    "/v1/admin/repair",
    status_code=202,
    response_model=JobOut,
    responses=STARTED,
    openapi_extra=takes(RepairRequest, required=False),
)
async def start_repair(
    caller: Caller, use_cases: UseCases, body: Annotated[RepairRequest, Depends(body_of(RepairRequest, optional=True))]
) -> Response:
    """Repairs what a scan finds and what can be repaired."""
    return _started(await use_cases.start_job(caller, "repair", index=body.index))


@router.get("/v1/admin/repair/{job_id}", response_model=JobOut, responses=FOLLOWED)
async def get_repair(caller: Caller, use_cases: UseCases, job_id: JobId) -> Response:
    return await _followed(caller, use_cases, "repair", job_id)


@router.post("/v1/admin/reconcile", status_code=202, response_model=JobOut, responses=STARTED)
async def start_reconcile(caller: Caller, use_cases: UseCases) -> Response:
    """Does what is owed to the index now."""
    return _started(await use_cases.start_job(caller, "reconcile"))


@router.get("/v1/admin/reconcile/{job_id}", response_model=JobOut, responses=FOLLOWED)
async def get_reconcile(caller: Caller, use_cases: UseCases, job_id: JobId) -> Response:
    return await _followed(caller, use_cases, "reconcile", job_id)


@router.post("/v1/admin/redact-rescan", status_code=202, response_model=JobOut, responses=STARTED)
async def start_redact_rescan(caller: Caller, use_cases: UseCases) -> Response:
    """Redacts everything stored again, by today's rules."""
    return _started(await use_cases.start_job(caller, "redact-rescan"))


@router.get("/v1/admin/redact-rescan/{job_id}", response_model=JobOut, responses=FOLLOWED)
async def get_redact_rescan(caller: Caller, use_cases: UseCases, job_id: JobId) -> Response:
    return await _followed(caller, use_cases, "redact-rescan", job_id)


def _started(job: JobOut) -> Response:
    return answer(job, 202, {"Location": f"/v1/admin/{job.kind}/{job.job_id}"})


async def _followed(caller: Caller, use_cases: UseCases, kind: JobKind, job_id: UUID) -> Response:
    return answer(await use_cases.job(caller, kind, job_id))
