"""Repair, in both directions: points from rows, and no point without its row. A lost text is named, never made up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from uuid import UUID

from coatcheck.domain.scopes import TenantScope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.findings import (
    EXACT_HASH,
    MISLABELLED,
    POINT_ORPHAN,
    REDUCED_HASH,
    TEXT_MISSING,
    Finding,
    Progress,
    ScanReport,
)
from coatcheck.memory.integrity import Scanner
from coatcheck.memory.projection import Projector
from coatcheck.memory.reconcile import Reconciler
from coatcheck.memory.recording import owe
from coatcheck.store import projections, segments, sessions
from coatcheck.store.database import WorkerTransaction

SegmentKey = tuple[UUID, str]
"""Session and hash."""
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
        lost: set[SegmentKey] = set()
        batch: list[Finding] = []
        async for finding in self._scanner.findings(scope, before, index=index, progress=progress):
            before.add(finding)
            if finding.kind in BEYOND_REPAIR:
                lost.add(_key(finding))
            else:
                batch.append(finding)
            if len(batch) >= BATCH:
                await self._mend(scope, batch, lost)
                batch = []
        await self._mend(scope, batch, lost)
        await self._reconciler.settle_tenant(scope.tenant_id)
        return before, await self._scanner.scan(scope, index=index)

    async def _mend(self, scope: TenantScope, findings: Sequence[Finding], lost: Set[SegmentKey]) -> None:
        strays: defaultdict[UUID, list[tuple[str, UUID]]] = defaultdict(list)
        again: defaultdict[UUID, set[str]] = defaultdict(set)
        reduced: defaultdict[UUID, set[str]] = defaultdict(set)
        for finding in findings:
            session_id, sha = _key(finding)
            if finding.kind == POINT_ORPHAN and finding.point_id is not None:
                strays[session_id].append((sha, finding.point_id))
            else:
                again[session_id].add(sha)
            if finding.kind == REDUCED_HASH:
                reduced[session_id].add(sha)
        # Before they are owed: with no row recorded, who scans meanwhile would take them for orphans, and take out what came after.
        mislabelled = [f.point_id for f in findings if f.kind in MISLABELLED and f.point_id is not None]
        await self._parts.index.delete_points(scope, mislabelled)
        for session_id, points in strays.items():
            await self._projector.remove_points(scope, session_id, points)
        for session_id, shas in again.items():
            gone = {sha for sha in shas if (session_id, sha) in lost}
            if gone:
                await self._withdraw(scope, session_id, gone)
            await self._project_again(scope, session_id, shas - gone, reduced[session_id])

    async def _withdraw(self, scope: TenantScope, session_id: UUID, shas: Set[str]) -> None:
        """What is lost can neither be found nor projected: it has no points."""
        rows = await self._parts.database.work(scope, lambda tx: projections.all_of(tx, session_id, sorted(shas)))
        await self._projector.remove(scope, session_id, rows)

    async def _project_again(self, scope: TenantScope, session_id: UUID, shas: Set[str], reduced: Set[str]) -> None:
        async def work(tx: WorkerTransaction) -> None:
            await sessions.lock(tx, session_id)
            if reduced:
                await segments.delete_reductions(tx, session_id, sorted(reduced))
            await owe(tx, self._parts.new_id, session_id, sorted(shas))

        await self._parts.database.work(scope, work)


def _key(finding: Finding) -> SegmentKey:
    return finding.session_id, finding.sha256
