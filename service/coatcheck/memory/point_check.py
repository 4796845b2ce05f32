"""Points against rows, in both directions: what each row is to have in the index, and what is there that no row asks for.

The first direction reads every point that it expects. The second reads ids alone: where a bucket of them is what the first has met,
there is nothing else in it, and only the others are read and looked up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence, Set
from uuid import UUID

from coatcheck.domain.passages import PointIds, StoredPoint, point_id
from coatcheck.domain.scopes import TenantScope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.findings import (
    POINT_ACL,
    POINT_HASH,
    POINT_MISSING,
    POINT_ORPHAN,
    POINT_SESSION,
    POINT_TENANT,
    Finding,
    Progress,
    ScanReport,
)
from coatcheck.memory.tally import Tally, bucket_of
from coatcheck.store import integrity, projections
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.projections import ProjectionKey
from coatcheck.store.retained import Expected


class PointCheck:
    """One scan's look at one tenant's points."""

    def __init__(self, parts: Collaborators, scope: TenantScope) -> None:
        self._parts = parts
        self._scope = scope
        self._generation = parts.generation.number
        self._ids = PointIds(scope.tenant_id, self._generation)
        self._met = Tally()

    async def first_look(self, expected: Sequence[Expected]) -> list[Finding]:
        """What is wrong with the points of these segments, each segment once in a scan: what is there is remembered as met."""
        wanted, live = await self._live(expected)
        self._met.add(point.point_id for point in live if point.tenant_id == self._scope.tenant_id)
        return await asyncio.to_thread(self._damage, wanted, live)

    async def second_look(self, expected: Sequence[Expected]) -> list[Finding]:
        """As the first, of segments that were looked at before."""
        return self._damage(*await self._live(expected))

    async def orphans(self, report: ScanReport, mislabelled: Set[UUID], progress: Progress) -> AsyncIterator[Finding]:
        """The points that no row asks for, once the first look has been at every segment; ``report`` counts all points."""
        there = Tally()
        async for ids in self._parts.index.scroll_ids(self._scope):
            there.add(ids)
            report.points += len(ids)
            progress(report)
        odd = self._met.differing(there)
        if not odd:
            return
        async for ids in self._parts.index.scroll_ids(self._scope):
            strays = await self._strays([at for at in ids if bucket_of(at) in odd and at not in mislabelled])
            for point in await self._strays([point.point_id for point in strays]):
                yield Finding(POINT_ORPHAN, point.session_id, point.exact_sha256, point.point_id)

    async def _live(self, expected: Sequence[Expected]) -> tuple[dict[UUID, Expected], list[StoredPoint]]:
        ids = self._ids

        def name() -> dict[UUID, Expected]:
            return {ids.of(row.session_id, row.sha256, number): row for row in expected for number in range(row.passages)}

        wanted = await asyncio.to_thread(name)
        return wanted, await self._parts.index.retrieve(self._scope, list(wanted)) if wanted else []

    def _damage(self, wanted: dict[UUID, Expected], live: Sequence[StoredPoint]) -> list[Finding]:
        found: list[Finding] = []
        for point in live:
            row = wanted[point.point_id]
            kind = _damage(self._scope, row, point)
            if kind is not None:
                found.append(Finding(kind, row.session_id, row.sha256, point.point_id))
        if len(live) < len(wanted):
            there = {point.point_id for point in live}
            found += [Finding(POINT_MISSING, row.session_id, row.sha256, at) for at, row in wanted.items() if at not in there]
        return found

    async def _strays(self, point_ids: Sequence[UUID]) -> list[StoredPoint]:
        """Those of the points that no row asks for: under another id than their payload gives, or for no passage of a segment."""
        if not point_ids:
            return []
        tenant_id = self._scope.tenant_id
        points = [point for point in await self._parts.index.retrieve(self._scope, point_ids) if point.tenant_id == tenant_id]
        by_id = {point.point_id: point for point in points if _id_of(point) == point.point_id}
        named = list(by_id.values())
        twins = [point for point in points if point.point_id not in by_id]
        return twins + await self._parts.database.work(self._scope, lambda tx: _without_row(tx, named, self._generation))


async def _without_row(tx: WorkerTransaction, named: Sequence[StoredPoint], generation: int) -> list[StoredPoint]:
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


def _id_of(point: StoredPoint) -> UUID:
    return point_id(point.tenant_id, point.session_id, point.exact_sha256, point.passage, point.generation)


def _key(point: StoredPoint) -> ProjectionKey:
    return point.session_id, point.exact_sha256, point.generation


def _damage(scope: TenantScope, row: Expected, point: StoredPoint) -> str | None:
    if point.tenant_id != scope.tenant_id:
        return POINT_TENANT
    if point.session_id != row.session_id:
        return POINT_SESSION
    if point.exact_sha256 != row.sha256 or point.reduced_sha256 != row.reduced_sha256:
        return POINT_HASH
    if point.acl != row.acl and set(point.acl) != set(row.acl):
        return POINT_ACL
    return None
