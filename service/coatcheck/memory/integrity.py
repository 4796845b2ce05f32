"""The scan: every retained segment against its hashes, its projection and its live points, and every point against its row.

It streams: memory stays flat at millions of rows. It reads one tenant at a time, under that tenant's scope. It runs beside
everything else, so what it finds is looked at twice, and what is outstanding is no damage.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence, Set
from dataclasses import dataclass, field
from hashlib import sha256
from uuid import UUID

from coatcheck.domain.canonical import sha256_hex
from coatcheck.domain.passages import StoredPoint, point_id
from coatcheck.domain.scopes import TenantScope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import integrity, projections
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.integrity import SegmentCheckRow
from coatcheck.store.lost import stream_lost
from coatcheck.store.projections import ProjectionKey

BATCH = 1_000
ROWS = 2_000
"""Segments read at once: each page costs what some hundred rows do."""
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
MISLABELLED = frozenset({POINT_TENANT, POINT_SESSION, POINT_HASH})
"""Such a point says that it stands for something else than its row: seen from there, it would be one without a row."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, at one segment or point."""

    kind: str
    session_id: UUID
    sha256: str
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
        mislabelled: set[UUID] = set()
        async for rows in integrity.stream_segments(self._parts.database, scope, self._parts.generation.number, ROWS):
            report.segments += len(rows)
            for finding in await self._at_second_look(scope, await self._check(scope, rows, index=index), index=index):
                if finding.kind in MISLABELLED and finding.point_id is not None:
                    mislabelled.add(finding.point_id)
                yield finding
            progress(report)
        async for lost in stream_lost(self._parts.database, scope, BATCH):
            kind = TEXT_MISSING if lost.is_missing else EXACT_HASH
            yield Finding(kind, lost.session_id, lost.sha256, _DETAILS[kind])
        if index:
            async for finding in self._orphans(scope, report, mislabelled, progress):
                yield finding

    async def _check(self, scope: TenantScope, rows: Sequence[SegmentCheckRow], *, index: bool) -> list[Finding]:
        return check_rows(rows) + (await self._check_points(scope, rows) if index else [])

    async def _at_second_look(self, scope: TenantScope, findings: list[Finding], *, index: bool) -> list[Finding]:
        """Those of the findings that are still so: rows and points are read one after the other, and may change between."""
        if not findings:
            return []
        keys = [(finding.session_id, finding.sha256) for finding in findings]

        async def work(tx: WorkerTransaction) -> tuple[list[SegmentCheckRow], set[UUID]]:
            rows = await integrity.of_keys(tx, keys, self._parts.generation.number)
            return rows, await integrity.acl_owed(tx, [session_id for session_id, _ in keys])

        rows, acl_owed = await self._parts.database.work(scope, work)
        again = set(await self._check(scope, rows, index=index))
        return [f for f in findings if f in again and not (f.kind == POINT_ACL and f.session_id in acl_owed)]

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

    async def _orphans(
        self, scope: TenantScope, report: ScanReport, mislabelled: Set[UUID], progress: Progress
    ) -> AsyncIterator[Finding]:
        async for page in self._parts.index.scroll(page_size=BATCH):
            mine = [point for point in page if point.tenant_id == scope.tenant_id]
            report.points += len(mine)
            strays = await self._without_row(scope, [point for point in mine if point.point_id not in mislabelled])
            if strays:
                live = await self._parts.index.retrieve(scope, [point.point_id for point in strays])
                for point in await self._without_row(scope, live):
                    yield Finding(POINT_ORPHAN, point.session_id, point.exact_sha256, _DETAILS[POINT_ORPHAN], point.point_id)
            progress(report)

    async def _without_row(self, scope: TenantScope, points: Sequence[StoredPoint]) -> list[StoredPoint]:
        """Those of the points that no row asks for: under another id than their payload gives, or for no passage of a segment."""
        if not points:
            return []
        generation = self._parts.generation.number
        twins = [point for point in points if _id_of(point) != point.point_id]
        named = [point for point in points if _id_of(point) == point.point_id]

        async def work(tx: WorkerTransaction) -> list[StoredPoint]:
            counts = await projections.passages_by_key(tx, [_key(point) for point in named])
            unknown = [point for point in named if point.passage >= counts.get(_key(point), 0)]
            if not unknown:
                return []
            keys = [_key(point)[:2] for point in unknown]
            owed = await integrity.outstanding(tx, keys)
            # A segment whose projection is missing was named as that; its points are what it is to have.
            retained = {(row.session_id, row.sha256) for row in await integrity.of_keys(tx, keys, generation)}
            unrecorded = {_key(point) for point in unknown if point.generation == generation and _key(point) not in counts}
            return [
                point
                for point in unknown
                if _key(point)[:2] not in owed and not (_key(point) in unrecorded and _key(point)[:2] in retained)
            ]

        return twins + await self._parts.database.work(scope, work)


def check_rows(rows: Sequence[SegmentCheckRow]) -> list[Finding]:
    """What PostgreSQL alone can tell of each row."""
    findings: list[Finding] = []
    for row in rows:
        # Nearly every row is whole and told in one step: a scan spends its time here.
        if (
            row.raw is not None
            and sha256(row.raw).hexdigest() == row.sha256
            and row.reduced_raw is None
            and row.passages is not None
        ):
            continue
        for kind in _row_damage(row):
            findings.append(Finding(kind, row.session_id, row.sha256, _DETAILS[kind]))
    return findings


def _row_damage(row: SegmentCheckRow) -> list[str]:
    damage: list[str] = []
    lost = TEXT_MISSING if row.raw is None else EXACT_HASH if sha256_hex(row.raw) != row.sha256 else None
    if lost is not None:
        damage.append(lost)
    if row.reduced_raw is not None and sha256_hex(row.reduced_raw) != row.reduced_sha256:
        damage.append(REDUCED_HASH)
    if row.passages is None and not row.pending and lost is None:  # what is lost cannot be projected, and is named already
        damage.append(PROJECTION_MISSING)
    return damage


def _id_of(point: StoredPoint) -> UUID:
    return point_id(point.tenant_id, point.session_id, point.exact_sha256, point.passage, point.generation)


def _key(point: StoredPoint) -> ProjectionKey:
    return point.session_id, point.exact_sha256, point.generation


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
