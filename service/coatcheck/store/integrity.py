"""What a tenant retains, page by page, with all that a scan compares: memory and locks stay small at any size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.scopes import NIL, TenantScope
from coatcheck.store import binary
from coatcheck.store.database import Database, WorkerTransaction

Position = tuple[UUID, str]
"""Session and hash of the last segment of a page."""

# Its own projection or that of a run that holds it is still owed, and has not been given up. What only erased runs hold is on its
# way out, and no longer retained. Both are asked for row by row (a subquery with LIMIT cannot be hashed): a planner that has not
# counted lately would read every entry of the tenant for each page.
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

_UNSETTLED = sa.text(f"""
    SELECT g.session_id, g.sha256, {_PENDING} AS pending, {_HELD} AS held
      FROM unnest(CAST(:session_ids AS uuid[]), CAST(:shas AS text[])) AS g(session_id, sha256)
""")

# A page's rows come by themselves, from one walk along the key; what belongs to them is read for the same stretch of keys and
# joined here, by the bytes of the session's id, which compare many times faster than UUIDs do. Asked for row by row in the
# database, it takes many times as long as reading and hashing the texts.
_PAGE: LiteralString = """
    SELECT uuid_send(session_id), sha256, raw FROM segments
     WHERE tenant_id = %(tenant)s AND (session_id, sha256) > (%(after_session)s::uuid, %(after_sha)s::text)
     ORDER BY session_id, sha256 LIMIT %(limit)s
"""

_PROJECTED: LiteralString = """
    SELECT uuid_send(session_id), segment_sha256, passages FROM projections
     WHERE tenant_id = %(tenant)s AND generation = %(generation)s
       AND (session_id, segment_sha256) > (%(after_session)s::uuid, %(after_sha)s::text)
       AND (session_id, segment_sha256) <= (%(last_session)s::uuid, %(last_sha)s::text)
"""

_REDUCED: LiteralString = """
    SELECT DISTINCT ON (session_id, exact_sha256) uuid_send(session_id), exact_sha256, raw, sha256 FROM reductions
     WHERE tenant_id = %(tenant)s
       AND (session_id, exact_sha256) > (%(after_session)s::uuid, %(after_sha)s::text)
       AND (session_id, exact_sha256) <= (%(last_session)s::uuid, %(last_sha)s::text)
     ORDER BY session_id, exact_sha256, stored_at DESC, reducer_revision DESC
"""

# Unsettled: some projection is owed in the session, or some run of it is erased. Elsewhere nothing is pending, and all is retained
# that a window holds: a segment that none holds comes along, and a second look leaves it out.
_SESSIONS: LiteralString = """
    SELECT s.session_id, s.acl, s.erased_at IS NOT NULL AS erased,
           EXISTS (SELECT FROM outbox o
                    WHERE o.tenant_id = %(tenant)s AND o.session_id = s.session_id
                      AND o.kind = 'upsert' AND o.quarantined_at IS NULL)
           OR EXISTS (SELECT FROM runs r
                       WHERE r.tenant_id = %(tenant)s AND r.session_id = s.session_id AND r.erased_at IS NOT NULL) AS unsettled
      FROM sessions s WHERE s.tenant_id = %(tenant)s AND s.session_id = ANY (%(session_ids)s)
"""

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


_NOT_REDUCED: tuple[bytes | None, str | None] = (None, None)


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


async def stream_segments(
    database: Database, scope: TenantScope, generation: int, batch: int
) -> AsyncIterator[list[SegmentCheckRow]]:
    """Every retained segment once, by session and hash, each page in a transaction of its own. Raises StoreUnavailable.

    The database reads the next page while the caller looks at one.
    """

    def begin(after: Position) -> asyncio.Task[tuple[list[SegmentCheckRow], Position | None]]:
        return asyncio.create_task(database.work(scope, partial(page, generation=generation, after=after, limit=batch)))

    coming: asyncio.Task[tuple[list[SegmentCheckRow], Position | None]] | None = begin((NIL, ""))
    try:
        while coming is not None:
            rows, after = await coming
            coming = None if after is None else begin(after)
            if rows:
                yield rows
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


async def page(
    tx: WorkerTransaction, *, generation: int, after: Position, limit: int
) -> tuple[list[SegmentCheckRow], Position | None]:
    """The retained ones among the next ``limit`` segments, and where the page after begins; None behind the last."""
    parameters = {"tenant": tx.scope.tenant_id, "generation": generation, "limit": limit}
    parameters |= {"after_session": after[0], "after_sha": after[1]}
    found = await binary.fetch(tx.connection, _PAGE, parameters)
    if not found:
        return [], None
    ids = {raw_id: UUID(bytes=raw_id) for raw_id in {row[0] for row in found}}
    last: Position = (ids[found[-1][0]], found[-1][1])
    parameters |= {"last_session": last[0], "last_sha": last[1], "session_ids": list(ids.values())}
    passages = {(raw_id, sha): number for raw_id, sha, number in await binary.fetch(tx.connection, _PROJECTED, parameters)}
    reduced = {(row[0], row[1]): (row[2], row[3]) for row in await binary.fetch(tx.connection, _REDUCED, parameters)}
    standing: dict[bytes, tuple[UUID, tuple[str, ...]]] = {}
    unsettled: set[bytes] = set()
    for session_id, acl, erased, is_unsettled in await binary.fetch(tx.connection, _SESSIONS, parameters):
        if not erased:
            standing[session_id.bytes] = session_id, tuple(acl)
            if is_unsettled:
                unsettled.add(session_id.bytes)
    states = await _settle(tx, [(ids[row[0]], row[1]) for row in found if row[0] in unsettled]) if unsettled else {}
    rows: list[SegmentCheckRow] = []
    for raw_id, sha, raw in found:
        session = standing.get(raw_id)
        if session is None:
            continue
        key = (raw_id, sha)
        pending, held = states[key] if raw_id in unsettled else (False, True)
        if held:
            reduced_raw, reduced_sha = reduced.get(key, _NOT_REDUCED)
            rows.append(SegmentCheckRow(session[0], sha, raw, reduced_raw, reduced_sha, passages.get(key), session[1], pending))
    return rows, last if len(found) == limit else None


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


async def _settle(tx: WorkerTransaction, keys: Sequence[Position]) -> dict[tuple[bytes, str], tuple[bool, bool]]:
    """Whether each is pending, and whether a run that stands holds it."""
    rows = await tx.connection.execute(_UNSETTLED, {"tenant": tx.scope.tenant_id, **_asked(keys)})
    return {(row.session_id.bytes, row.sha256): (row.pending, row.held) for row in rows}


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
