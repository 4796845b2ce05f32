"""The scan: every retained segment against its hashes, its projection and its live points, and every point against its row.

It streams: memory stays flat at millions of rows. It reads one tenant at a time, under that tenant's scope.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from coatcheck.domain.canonical import sha256_hex
from coatcheck.domain.passages import StoredPoint, point_id
from coatcheck.domain.scopes import TenantScope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import integrity, projections
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.integrity import SegmentCheckRow

BATCH = 1_000
MAX_FINDINGS = 1_000
"""Findings that are kept to be shown; all are counted."""

TEXT_MISSING = "text-missing"
EXACT_HASH = "exact-hash-mismatch"
REDUCED_HASH = "reduced-hash-mismatch"
PROJECTION_MISSING = "projection-missing"
POINT_MISSING = "point-missing"
POINT_TENANT = "point-wrong-tenant"
POINT_SESSION = "point-wrong-session"
POINT_HASH = "point-wrong-hash"
POINT_ACL = "point-wrong-acl"
POINT_ORPHAN = "point-orphan"
KINDS = (
    TEXT_MISSING, EXACT_HASH, REDUCED_HASH, PROJECTION_MISSING, POINT_MISSING, POINT_TENANT, POINT_SESSION, POINT_HASH,
    POINT_ACL, POINT_ORPHAN,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, at one segment or point."""

    kind: str
    session_id: UUID | None
    sha256: str | None
    detail: str
    point_id: UUID | None = None


@dataclass(slots=True)
class ScanReport:
    """What a scan counted and found."""

    segments: int = 0
    points: int = 0
    findings_by_kind: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def findings_total(self) -> int:
        return sum(self.findings_by_kind.values())

    def add(self, finding: Finding) -> None:
        self.findings_by_kind[finding.kind] = self.findings_by_kind.get(finding.kind, 0) + 1
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding)


Progress = Callable[[ScanReport], None]


class Scanner:
    """Scans one tenant."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def scan(self, scope: TenantScope, *, index: bool, progress: Progress = lambda report: None) -> ScanReport:
        """Checks every row, and with ``index`` every live point in both directions. Raises StoreUnavailable, IndexUnavailable."""
        report = ScanReport()
        async for finding in self.findings(scope, report, index=index, progress=progress):
            report.add(finding)
        progress(report)
        return report

    async def findings(self, scope: TenantScope, report: ScanReport, *, index: bool, progress: Progress) -> AsyncIterator[Finding]:
        """The findings one by one, as they are met; ``report`` counts what was looked at."""
        generation = self._parts.generation.number
        async for rows in integrity.stream_segments(self._parts.database, scope, generation, BATCH):
            report.segments += len(rows)
            for finding in check_rows(rows):
                yield finding
            if index:
                for finding in await self._check_points(scope, rows):
                    yield finding
            progress(report)
        if index:
            async for finding in self._orphans(scope, report, progress):
                yield finding

    async def _check_points(self, scope: TenantScope, rows: Sequence[SegmentCheckRow]) -> list[Finding]:
        wanted: dict[UUID, SegmentCheckRow] = {}
        for row in rows:
            for number in range(row.passages or 0):
                wanted[point_id(scope.tenant_id, row.session_id, row.sha256, number, self._parts.generation.number)] = row
        live = {point.point_id: point for point in await self._parts.index.retrieve(scope, list(wanted))}
        findings: list[Finding] = []
        for expected_id, row in wanted.items():
            point = live.get(expected_id)
            kind = POINT_MISSING if point is None else _point_damage(scope, row, point)
            if kind is not None:
                findings.append(Finding(kind, row.session_id, row.sha256, _DETAILS[kind], expected_id))
        return findings

    async def _orphans(self, scope: TenantScope, report: ScanReport, progress: Progress) -> AsyncIterator[Finding]:
        async for page in self._parts.index.scroll(page_size=BATCH):
            mine = [point for point in page if point.tenant_id == scope.tenant_id]
            report.points += len(mine)
            if mine:
                known = await self._known(scope, mine)
                for point in mine:
                    if (point.session_id, point.exact_sha256, point.passage) not in known and not self._mislabelled(scope, point):
                        yield Finding(POINT_ORPHAN, point.session_id, point.exact_sha256, _DETAILS[POINT_ORPHAN], point.point_id)
            progress(report)

    def _mislabelled(self, scope: TenantScope, point: StoredPoint) -> bool:
        """A point whose id is not that of its payload is damage of another point, which was named already."""
        expected = point_id(scope.tenant_id, point.session_id, point.exact_sha256, point.passage, point.generation)
        return expected != point.point_id

    async def _known(self, scope: TenantScope, points: Sequence[StoredPoint]) -> set[tuple[UUID, str, int]]:
        keys = list({(point.session_id, point.exact_sha256) for point in points})
        generation = self._parts.generation.number

        async def work(tx: WorkerTransaction) -> dict[tuple[UUID, str], int]:
            return await projections.passages_by_key(tx, keys, generation)

        counts = await self._parts.database.work(scope, work)
        return {(session_id, sha, number) for (session_id, sha), passages in counts.items() for number in range(passages)}


def check_rows(rows: Sequence[SegmentCheckRow]) -> list[Finding]:
    """What PostgreSQL alone can tell of each row."""
    findings: list[Finding] = []
    for row in rows:
        for kind in _row_damage(row):
            findings.append(Finding(kind, row.session_id, row.sha256, _DETAILS[kind]))
    return findings


def _row_damage(row: SegmentCheckRow) -> list[str]:
    damage: list[str] = []
    if row.raw is None:
        damage.append(TEXT_MISSING)
    elif sha256_hex(row.raw) != row.sha256:
        damage.append(EXACT_HASH)
    if row.reduced_raw is not None and sha256_hex(row.reduced_raw) != row.reduced_sha256:
        damage.append(REDUCED_HASH)
    if row.passages is None and not row.pending:
        damage.append(PROJECTION_MISSING)
    return damage


def _point_damage(scope: TenantScope, row: SegmentCheckRow, point: StoredPoint) -> str | None:
    if point.tenant_id != scope.tenant_id:
        return POINT_TENANT
    if point.session_id != row.session_id:
        return POINT_SESSION
    if point.exact_sha256 != row.sha256 or point.reduced_sha256 != row.reduced_sha256:
        return POINT_HASH
    if set(point.acl) != set(row.acl):
        return POINT_ACL
    return None


_DETAILS = {
    TEXT_MISSING: "the exact text is gone",
    EXACT_HASH: "the stored text has another SHA-256 than its name",
    REDUCED_HASH: "the reduced text has another SHA-256 than is recorded",
    PROJECTION_MISSING: "no projection is recorded, and none is outstanding",
    POINT_MISSING: "a recorded point is not in the index",
    POINT_TENANT: "the point names another tenant",
    POINT_SESSION: "the point names another session",
    POINT_HASH: "the point carries another hash",
    POINT_ACL: "the point carries another acl",
    POINT_ORPHAN: "the point stands for no row",
}
