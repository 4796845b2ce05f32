"""Single segments as a scan sees them: what is stored of each, whether it is retained, and what is still owed for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from coatcheck.store.database import WorkerTransaction

Position = tuple[UUID, str]
"""Session and hash of a segment."""

# Its own projection or that of a run that holds it is still owed, and has not been given up. What only erased runs hold is on its
# way out, and no longer retained. Both are asked for row by row (a subquery with LIMIT cannot be hashed): a planner that has not
# counted lately would read every entry of the tenant for each of them.
_PENDING = """
    coalesce((
        SELECT true FROM outbox o
         WHERE o.tenant_id = :tenant AND o.session_id = g.session_id AND o.kind = 'upsert' AND o.quarantined_at IS NULL
           AND (o.segment_sha256 = g.sha256
                OR o.manifest_id = ANY (ARRAY(
                    SELECT e.manifest_id FROM entries e
                     WHERE e.tenant_id = :tenant AND e.session_id = g.session_id AND e.segment_sha256 = g.sha256)))
         LIMIT 1), false)
"""
_HELD = """
    coalesce((
        SELECT true FROM entries e
         WHERE e.tenant_id = :tenant AND e.session_id = g.session_id AND e.segment_sha256 = g.sha256
           AND e.manifest_id <> ALL (ARRAY(SELECT manifest_id FROM runs WHERE tenant_id = :tenant AND erased_at IS NOT NULL))
         LIMIT 1), false)
"""

_OF_KEYS = sa.text(f"""
    SELECT g.session_id, g.sha256, g.raw, d.raw AS reduced_raw, d.sha256 AS reduced_sha256, p.passages, s.acl,
           {_PENDING} AS pending, s.erased_at IS NULL AND {_HELD} AS retained
      FROM (SELECT s.* FROM unnest(CAST(:session_ids AS uuid[]), CAST(:shas AS text[])) AS asked(session_id, sha256)
              JOIN segments s ON s.tenant_id = :tenant AND s.session_id = asked.session_id AND s.sha256 = asked.sha256) g
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
""")

# As _HELD, of a session that stands.
_HELD_OF = sa.text(f"""
    SELECT g.session_id, g.sha256
      FROM unnest(CAST(:session_ids AS uuid[]), CAST(:shas AS text[])) AS g(session_id, sha256)
     WHERE {_HELD}
       AND EXISTS (SELECT FROM sessions s WHERE s.tenant_id = :tenant AND s.session_id = g.session_id AND s.erased_at IS NULL)
     ORDER BY 1, 2
""")

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


class SegmentCheckRow(NamedTuple):
    """One retained segment as stored: ``sha256`` is its name, which its bytes must have. A tuple, since millions are made."""

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


async def held_of(tx: WorkerTransaction, keys: Sequence[Position]) -> list[Position]:
    """Those of the (session, segment) that some window which stands holds, whether they have a row or not."""
    if not keys:
        return []
    rows = await tx.connection.execute(_HELD_OF, {"tenant": tx.scope.tenant_id, **_asked(keys)})
    return [(row.session_id, row.sha256) for row in rows]


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
