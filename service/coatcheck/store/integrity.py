"""What a tenant retains, page by page, with all that a scan compares: memory and locks stay small at any size."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.scopes import NIL, TenantScope
from coatcheck.store.database import Database, WorkerTransaction

Position = tuple[UUID, str]
"""Session and hash of the last segment of a page."""

# Pending: its own projection or that of a run that holds it is still owed, and has not been given up. What only erased runs
# hold is on its way out, and no longer retained. Both are asked for row by row (a subquery with LIMIT cannot be hashed): a
# planner that has not counted lately would read every entry of the tenant for each page.
_CHECKED = """
    SELECT g.session_id, g.sha256, g.raw, d.raw AS reduced_raw, d.sha256 AS reduced_sha256, p.passages, s.acl,
           coalesce((
               SELECT true FROM outbox o
                WHERE o.tenant_id = :tenant AND o.session_id = g.session_id AND o.kind = 'upsert' AND o.quarantined_at IS NULL
                  AND (o.segment_sha256 = g.sha256
                       OR o.manifest_id = ANY (ARRAY(
                           SELECT e.manifest_id FROM entries e
                            WHERE e.tenant_id = :tenant AND e.session_id = g.session_id AND e.segment_sha256 = g.sha256)))
                LIMIT 1), false) AS pending,
           s.erased_at IS NULL AND coalesce((
               SELECT true FROM entries e
                WHERE e.tenant_id = :tenant AND e.session_id = g.session_id AND e.segment_sha256 = g.sha256
                  AND e.manifest_id <> ALL (ARRAY(
                      SELECT manifest_id FROM runs WHERE tenant_id = :tenant AND erased_at IS NOT NULL))
                LIMIT 1), false) AS retained
      FROM ({chosen}) g
     CROSS JOIN LATERAL (
           SELECT acl, erased_at FROM sessions WHERE tenant_id = :tenant AND session_id = g.session_id LIMIT 1
           ) s
      LEFT JOIN LATERAL (
           SELECT passages FROM projections
            WHERE tenant_id = :tenant AND session_id = g.session_id AND segment_sha256 = g.sha256 AND generation = :generation
            LIMIT 1
           ) p ON true
      LEFT JOIN LATERAL (
           SELECT raw, sha256 FROM reductions
            WHERE tenant_id = :tenant AND session_id = g.session_id AND exact_sha256 = g.sha256
            ORDER BY stored_at DESC, reducer_revision DESC LIMIT 1
           ) d ON true
     ORDER BY g.session_id, g.sha256
"""

_PAGE = sa.text(
    _CHECKED.format(
        chosen="""
            SELECT * FROM segments
             WHERE tenant_id = :tenant AND (session_id, sha256) > (CAST(:after_session AS uuid), CAST(:after_sha AS text))
             ORDER BY session_id, sha256 LIMIT :limit"""
    )
)

_OF_KEYS = sa.text(
    _CHECKED.format(
        chosen="""
            SELECT s.* FROM unnest(CAST(:session_ids AS uuid[]), CAST(:shas AS text[])) AS asked(session_id, sha256)
              JOIN segments s ON s.tenant_id = :tenant AND s.session_id = asked.session_id AND s.sha256 = asked.sha256"""
    )
)

# What is outstanding is no damage: a point whose row is to be recorded, or that an erasure is to take out.
_OUTSTANDING = sa.text("""
    SELECT asked.session_id, asked.sha256
      FROM unnest(CAST(:session_ids AS uuid[]), CAST(:shas AS text[])) AS asked(session_id, sha256)
     WHERE EXISTS (
           SELECT FROM outbox o
            WHERE o.tenant_id = :tenant AND o.session_id = asked.session_id AND o.quarantined_at IS NULL
              AND (o.kind IN ('erase', 'sweep')
                   OR o.kind = 'upsert'
                      AND (o.segment_sha256 = asked.sha256
                           OR o.manifest_id = ANY (ARRAY(
                               SELECT e.manifest_id FROM entries e
                                WHERE e.tenant_id = :tenant AND e.session_id = asked.session_id
                                  AND e.segment_sha256 = asked.sha256)))))
""")

_ACL_OWED = sa.text("""
    SELECT DISTINCT session_id FROM outbox
     WHERE tenant_id = :tenant AND kind = 'acl' AND quarantined_at IS NULL AND session_id = ANY (CAST(:session_ids AS uuid[]))
""")


@dataclass(frozen=True, slots=True)
class SegmentCheckRow:
    """One retained segment as stored: ``sha256`` is its name, which its bytes must have."""

    session_id: UUID
    sha256: str
    raw: bytes | None
    reduced_raw: bytes | None
    reduced_sha256: str | None
    passages: int | None
    """Of the generation that was asked for; None where no projection is recorded."""
    acl: tuple[str, ...]
    pending: bool
    """A projection is still owed."""


async def stream_segments(
    database: Database, scope: TenantScope, generation: int, batch: int
) -> AsyncIterator[list[SegmentCheckRow]]:
    """Every retained segment once, by session and hash, each page in a transaction of its own. Raises StoreUnavailable."""
    after: Position | None = (NIL, "")
    while after is not None:
        rows, after = await database.work(scope, partial(page, generation=generation, after=after, limit=batch))
        if rows:
            yield rows


async def page(
    tx: WorkerTransaction, *, generation: int, after: Position, limit: int
) -> tuple[list[SegmentCheckRow], Position | None]:
    """The retained ones among the next ``limit`` segments, and where the page after begins; None behind the last."""
    session_id, sha256 = after
    parameters = {
        "tenant": tx.scope.tenant_id,
        "generation": generation,
        "after_session": session_id,
        "after_sha": sha256,
        "limit": limit,
    }
    found = (await tx.connection.execute(_PAGE, parameters)).all()
    rows = [_row(row) for row in found if row.retained]
    return rows, (found[-1].session_id, found[-1].sha256) if len(found) == limit else None


async def of_keys(tx: WorkerTransaction, keys: Sequence[Position], generation: int) -> list[SegmentCheckRow]:
    """These segments, as they stand now; what is no longer retained is left out."""
    parameters = {"tenant": tx.scope.tenant_id, "generation": generation, **_asked(keys)}
    return [_row(row) for row in await tx.connection.execute(_OF_KEYS, parameters) if row.retained]


async def outstanding(tx: WorkerTransaction, keys: Sequence[Position]) -> set[Position]:
    """Those of the (session, segment) whose points are still being written or taken out, and have not been given up."""
    rows = await tx.connection.execute(_OUTSTANDING, {"tenant": tx.scope.tenant_id, **_asked(keys)})
    return {(row.session_id, row.sha256) for row in rows}


async def acl_owed(tx: WorkerTransaction, session_ids: Sequence[UUID]) -> set[UUID]:
    """Those of the sessions whose points are still to be given the acl that the row has."""
    parameters = {"tenant": tx.scope.tenant_id, "session_ids": list(dict.fromkeys(session_ids))}
    return set(await tx.connection.scalars(_ACL_OWED, parameters))


def _asked(keys: Sequence[Position]) -> dict[str, object]:
    distinct = list(dict.fromkeys(keys))
    return {"session_ids": [session_id for session_id, _ in distinct], "shas": [sha for _, sha in distinct]}


def _row(row: sa.Row[Any]) -> SegmentCheckRow:
    return SegmentCheckRow(
        session_id=row.session_id,
        sha256=row.sha256,
        raw=row.raw,
        reduced_raw=row.reduced_raw,
        reduced_sha256=row.reduced_sha256,
        passages=row.passages,
        acl=tuple(row.acl),
        pending=row.pending,
    )
