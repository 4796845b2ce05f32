"""Repair, in both directions: points from rows, and no point without its row. A lost text is named, never made up."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.scopes import TenantScope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.integrity import (
    EXACT_HASH,
    POINT_ORPHAN,
    REDUCED_HASH,
    TEXT_MISSING,
    Finding,
    Progress,
    Scanner,
    ScanReport,
)
from coatcheck.memory.projection import Projector
from coatcheck.memory.reconcile import Reconciler
from coatcheck.store import outbox, projections, segments
from coatcheck.store.database import WorkerTransaction

BEYOND_REPAIR = frozenset({TEXT_MISSING, EXACT_HASH})
BATCH = 500


class Repair:
    """Scans one tenant and mends what the rows can mend. Twice is as good as once."""

    def __init__(self, parts: Collaborators, scanner: Scanner, reconciler: Reconciler, projector: Projector) -> None:
        self._parts = parts
        self._projector = projector
        self._scanner = scanner
        self._reconciler = reconciler

    async def repair(self, scope: TenantScope, *, index: bool, progress: Progress) -> tuple[ScanReport, ScanReport]:
        """What was found, and what a second scan finds after mending."""
        before = ScanReport()
        batch: list[Finding] = []
        async for finding in self._scanner.findings(scope, before, index=index, progress=progress):
            before.add(finding)
            if finding.kind not in BEYOND_REPAIR:
                batch.append(finding)
            if len(batch) >= BATCH:
                await self._mend(scope, batch)
                batch = []
        await self._mend(scope, batch)
        await self._reconciler.drain_tenant(scope.tenant_id)
        return before, await self._scanner.scan(scope, index=index)

    async def _mend(self, scope: TenantScope, findings: Sequence[Finding]) -> None:
        orphans: dict[UUID, list[tuple[str, UUID]]] = {}
        for finding in findings:
            if finding.kind == POINT_ORPHAN and finding.point_id and finding.session_id and finding.sha256:
                orphans.setdefault(finding.session_id, []).append((finding.sha256, finding.point_id))
        for session_id, points in orphans.items():
            await self._projector.remove_points(scope, session_id, points)
        again = {(f.session_id, f.sha256) for f in findings if f.kind != POINT_ORPHAN and f.session_id and f.sha256}
        reduced = {(f.session_id, f.sha256) for f in findings if f.kind == REDUCED_HASH and f.session_id and f.sha256}

        async def work(tx: WorkerTransaction) -> None:
            for session_id, sha in sorted(reduced, key=str):
                assert session_id is not None
                assert sha is not None
                await segments.delete_reductions(tx, session_id, [sha])
            for session_id, sha in sorted(again, key=str):
                assert session_id is not None
                assert sha is not None
                await projections.delete(tx, session_id, [sha])
                await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.UPSERT, session_id, segment_sha256=sha)

        if again:
            await self._parts.database.work(scope, work)
