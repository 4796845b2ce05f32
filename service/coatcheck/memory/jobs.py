"""Long operations that a POST starts and a GET follows: scan, repair, reconcile, redact-rescan.

Jobs live in this process: a restart ends them, and each may simply be started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

import structlog

from coatcheck.domain.errors import CoatcheckError, NotFound, Overloaded
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.findings import Finding, ScanReport
from coatcheck.memory.integrity import Scanner
from coatcheck.memory.reconcile import Reconciler
from coatcheck.memory.repair import Repair
from coatcheck.memory.rescan import Rescan
from coatcheck.store import audit, entries, tombstones
from coatcheck.store.database import WorkerTransaction
from coatcheck_client.wire import FindingOut, JobOut

log = structlog.get_logger(__name__)
JobKind = Literal["scan", "repair", "reconcile", "redact-rescan"]
OPERATIONS: dict[JobKind, Operation] = {
    "scan": Operation.SCAN,
    "repair": Operation.REPAIR,
    "reconcile": Operation.RECONCILE,
    "redact-rescan": Operation.REDACT,
}
MAX_JOBS = 50
"""Jobs remembered for one tenant; its oldest that has ended goes first."""


@dataclass(slots=True)
class _Job:
    job_id: UUID
    tenant_id: UUID
    kind: JobKind
    status: Literal["running", "done", "failed"] = "running"
    progress: dict[str, int] = field(default_factory=dict)
    findings: list[FindingOut] = field(default_factory=list)
    findings_total: int = 0
    error: str | None = None
    task: asyncio.Task[None] | None = None


class Jobs:
    """The use cases behind ``/v1/admin/scan``, ``repair``, ``reconcile`` and ``redact-rescan``."""

    def __init__(self, parts: Collaborators, scanner: Scanner, repair: Repair, reconciler: Reconciler, rescan: Rescan) -> None:
        self._parts = parts
        self._scanner = scanner
        self._repair = repair
        self._reconciler = reconciler
        self._rescan = rescan
        self._jobs: dict[UUID, _Job] = {}

    async def start(self, context: RequestContext, kind: JobKind, *, index: bool = True) -> JobOut:
        """Raises Overloaded while as many jobs run as are remembered, StoreUnavailable."""
        context.require_for_tenant(OPERATIONS[kind])
        work: dict[JobKind, Callable[[_Job], Awaitable[None]]] = {
            "scan": lambda job: self._do_scan(context, job, index),
            "repair": lambda job: self._do_repair(context, job, index),
            "reconcile": lambda job: self._do_reconcile(context, job),
            "redact-rescan": lambda job: self._do_rescan(context, job),
        }
        self._forget_one(context.tenant_id)
        job = _Job(self._parts.new_id(), context.tenant_id, kind)
        if kind != "scan":  # which only looks
            await self._parts.database.work(
                context.tenant_scope,
                lambda tx: audit.record(tx, self._parts.new_id(), context.actor, f"job.{kind}", "job", str(job.job_id)),
            )
        self._jobs[job.job_id] = job
        job.task = asyncio.create_task(self._run(job, work[kind]))
        job.task.add_done_callback(_ended)
        return _out(job)

    async def one(self, context: RequestContext, kind: JobKind, job_id: UUID) -> JobOut:
        context.require_for_tenant(OPERATIONS[kind])
        job = self._jobs.get(job_id)
        if job is None or job.tenant_id != context.tenant_id or job.kind != kind:
            raise NotFound
        if job.findings:
            await self._forget_erased(context, job)
        return _out(job)

    async def end_of(self, tenant_id: UUID) -> None:
        """Ends and forgets whatever runs, or has run, for a tenant that goes."""
        of_tenant = [job for job in self._jobs.values() if job.tenant_id == tenant_id]
        tasks = [job.task for job in of_tenant if job.task is not None and not job.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for job in of_tenant:
            self._jobs.pop(job.job_id, None)

    async def stop(self, limit_s: float) -> None:
        """Ends what runs, and waits so long for that."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None and not job.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=limit_s)

    async def _run(self, job: _Job, work: Callable[[_Job], Awaitable[None]]) -> None:
        try:
            await work(job)
        except CoatcheckError as error:
            job.status, job.error = "failed", error.slug
        except BaseException as error:
            job.status, job.error = "failed", type(error).__name__
            raise
        else:
            job.status = "done"

    async def _do_scan(self, context: RequestContext, job: _Job, index: bool) -> None:
        report = await self._scanner.scan(context.tenant_scope, index=index, progress=lambda seen: _progress(job, seen))
        _findings(job, report, still=None)

    async def _do_repair(self, context: RequestContext, job: _Job, index: bool) -> None:
        before, after = await self._repair.repair(context.tenant_scope, index=index, progress=lambda seen: _progress(job, seen))
        _progress(job, before)
        job.progress |= {"remaining": after.findings_total, "repaired": before.findings_total - after.findings_total}
        _findings(job, before, still=after)

    async def _do_reconcile(self, context: RequestContext, job: _Job) -> None:
        await self._reconciler.requeue(context.tenant_scope)
        done = await self._reconciler.drain_tenant(context.tenant_id)
        stats = await self._reconciler.stats(context.tenant_scope)
        job.progress = {
            "completed": done.completed, "failed": done.failed, "pending": stats.pending, "quarantined": stats.quarantined,
        }  # fmt: skip

    async def _do_rescan(self, context: RequestContext, job: _Job) -> None:
        job.progress = await self._rescan.rescan(context.tenant_scope)
        await self._reconciler.settle_tenant(context.tenant_id)

    async def _forget_erased(self, context: RequestContext, job: _Job) -> None:
        """What was erased since is no finding any more, whichever process erased it: its hash would let a guess be confirmed."""
        tag = self._parts.keyring.segment_tag
        sessions = {finding.session_id: ("session", str(finding.session_id)) for finding in job.findings}
        versions = self._parts.keyring.versions
        segments = {
            sha: {("segment", tag(context.tenant_id, sha, version)) for version in versions}
            for finding in job.findings
            if (sha := finding.sha256)
        }

        async def work(tx: WorkerTransaction) -> list[FindingOut]:
            erased = await tombstones.existing(tx, list({*sessions.values()}.union(*segments.values())))
            still = []
            for finding in job.findings:
                gone = sessions[finding.session_id] in erased
                if not gone and finding.session_id and finding.sha256 and segments[finding.sha256] & erased:
                    # The same text may stand elsewhere, or may have been stored anew.
                    gone = not await entries.held(tx, finding.session_id, [finding.sha256])
                if not gone:
                    still.append(finding)
            return still

        job.findings = await self._parts.database.work(context.tenant_scope, work)

    def _forget_one(self, tenant_id: UUID) -> None:
        """Makes room among the tenant's own: nobody else's jobs push one of these out."""
        jobs = [job for job in self._jobs.values() if job.tenant_id == tenant_id]
        if len(jobs) < MAX_JOBS:
            return
        ended = next((job.job_id for job in jobs if job.status != "running"), None)
        if ended is None:
            raise Overloaded("Too many jobs are running.")
        del self._jobs[ended]


def _ended(task: asyncio.Task[None]) -> None:
    """Whoever follows the job reads its error; its traceback, which may hold content, goes nowhere."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("job.failed", problem=type(error).__name__)


def _progress(job: _Job, report: ScanReport) -> None:
    job.progress = {"segments": report.segments, "points": report.points, **report.findings_by_kind}
    job.findings_total = report.findings_total


def _findings(job: _Job, report: ScanReport, *, still: ScanReport | None) -> None:
    remaining = None if still is None else {(f.kind, f.session_id, f.sha256, f.point_id) for f in still.findings}
    job.findings_total = report.findings_total if still is None else still.findings_total
    job.findings = [_finding(f, remaining) for f in report.findings]


def _finding(finding: Finding, remaining: set[tuple[str, UUID, str, UUID | None]] | None) -> FindingOut:
    key = (finding.kind, finding.session_id, finding.sha256, finding.point_id)
    return FindingOut(
        kind=finding.kind, session_id=finding.session_id, sha256=finding.sha256, detail=finding.detail,
        repaired=remaining is not None and key not in remaining,
    )  # fmt: skip


def _out(job: _Job) -> JobOut:
    return JobOut(
        job_id=job.job_id, kind=job.kind, status=job.status, progress=job.progress, findings=job.findings,
        findings_total=job.findings_total, error=job.error,
    )  # fmt: skip
