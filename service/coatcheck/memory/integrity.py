"""The scan: every retained segment against its hashes, its projection and its live points, and every point against its row.

It streams: memory stays flat at millions of rows. It reads one tenant at a time, under that tenant's scope. It runs beside
everything else, so what it finds is looked at twice, and what is outstanding is no damage.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from coatcheck.domain.canonical import sha256_hex
from coatcheck.domain.scopes import TenantScope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.findings import (
    EXACT_HASH,
    MISLABELLED,
    POINT_ACL,
    PROJECTION_MISSING,
    REDUCED_HASH,
    TEXT_MISSING,
    Finding,
    Progress,
    ScanReport,
)
from coatcheck.memory.point_check import PointCheck
from coatcheck.store import integrity
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.integrity import SegmentCheckRow
from coatcheck.store.lost import stream_lost
from coatcheck.store.retained import Expected, Page, stream_retained

BATCH = 1_000


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
        points = PointCheck(self._parts, scope) if index else None
        mislabelled: set[UUID] = set()
        async for page in stream_retained(self._parts.database, scope, generation, with_passages=index):
            report.segments += len(page.segments)
            for finding in await self._damage(scope, page, points):
                if finding.kind in MISLABELLED and finding.point_id is not None:
                    mislabelled.add(finding.point_id)
                yield finding
            for session_id, sha in page.lost:
                yield Finding(TEXT_MISSING, session_id, sha)
            progress(report)
        async for lost in stream_lost(self._parts.database, scope, BATCH):
            yield Finding(TEXT_MISSING if lost.is_missing else EXACT_HASH, lost.session_id, lost.sha256)
        if points is not None:
            async for finding in points.orphans(report, mislabelled, progress):
                yield finding

    async def _damage(self, scope: TenantScope, page: Page, points: PointCheck | None) -> list[Finding]:
        """What is wrong with the segments of a page. Rows and points are read one after the other, and may change between: what a
        first look finds is told only if a second finds it as well."""
        # In a thread, beside which the next page arrives and requests are served.
        doubtful = await asyncio.to_thread(page.doubtful)
        suspected = await points.first_look(page.expected()) if points is not None else []
        keys = doubtful + [(finding.session_id, finding.sha256) for finding in suspected]
        if not keys:
            return []

        async def work(tx: WorkerTransaction) -> tuple[list[SegmentCheckRow], set[UUID]]:
            rows = await integrity.of_keys(tx, keys, self._parts.generation.number)
            return rows, await integrity.acl_owed(tx, [finding.session_id for finding in suspected])

        rows, acl_owed = await self._parts.database.work(scope, work)
        found = await asyncio.to_thread(check_rows, rows)
        if points is not None and suspected:
            again = set(await points.second_look([_expected(row) for row in rows]))
            found += [f for f in suspected if f in again and not (f.kind == POINT_ACL and f.session_id in acl_owed)]
        return found


def check_rows(rows: Sequence[SegmentCheckRow]) -> list[Finding]:
    """What PostgreSQL alone can tell of each row."""
    return [Finding(kind, row.session_id, row.sha256) for row in rows for kind in _row_damage(row)]


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


def _expected(row: SegmentCheckRow) -> Expected:
    return Expected(row.session_id, row.sha256, row.reduced_sha256, row.passages or 0, row.acl)
