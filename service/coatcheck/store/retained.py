"""What a tenant retains, page by page, with all that a scan compares: memory and locks stay small at any size.

A page is one walk along the key of the segments. What belongs to them is read for the same stretch of keys and joined here, by the
bytes of the session's id, which compare many times faster than UUIDs do: asked for row by row in the database, it takes many times
as long as reading and hashing the texts. Nearly every segment is whole: of those that may not be, only the keys are handed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import LiteralString, NamedTuple
from uuid import UUID

from coatcheck.domain.canonical import sha256_hex
from coatcheck.domain.scopes import NIL, TenantScope
from coatcheck.store import binary
from coatcheck.store.binary import Reader, Rows
from coatcheck.store.database import Database, WorkerTransaction
from coatcheck.store.integrity import Position, held_of

MOST_SEGMENTS = 4_000
PAGE_BYTES = 4_000_000
"""A page is as many segments as would have these bytes, were they as long as those of the page before."""
FIRST_SEGMENTS = 1_000
LOST_LIMIT = 1_000
"""Lost segments that are named at once; a page with more ends there."""
BEFORE_ALL: Position = (NIL, "")
BEHIND_ALL: Position = (UUID(int=2**128 - 1), "g")
"""``g`` follows every hex digit."""

# A planner that has not counted lately would read the whole table for each page.
_BY_KEY: LiteralString = "SELECT set_config('enable_seqscan', 'off', true)"

_SEGMENTS: LiteralString = """
    SELECT uuid_send(session_id), sha256, raw FROM segments
     WHERE tenant_id = $1::uuid AND (session_id, sha256) > ($2::uuid, $3::text)
     ORDER BY session_id, sha256 LIMIT $4::int
"""

_PASSAGES: LiteralString = """
    SELECT uuid_send(session_id), segment_sha256, passages FROM projections
     WHERE tenant_id = $1::uuid AND generation = $6::int
       AND (session_id, segment_sha256) > ($2::uuid, $3::text) AND (session_id, segment_sha256) <= ($4::uuid, $5::text)
"""

_UNPROJECTED: LiteralString = """
    SELECT uuid_send(session_id), sha256 FROM (
        SELECT session_id, sha256 FROM segments
         WHERE tenant_id = $1::uuid AND (session_id, sha256) > ($2::uuid, $3::text) AND (session_id, sha256) <= ($4::uuid, $5::text)
        EXCEPT
        SELECT session_id, segment_sha256 FROM projections
         WHERE tenant_id = $1::uuid AND generation = $6::int
           AND (session_id, segment_sha256) > ($2::uuid, $3::text) AND (session_id, segment_sha256) <= ($4::uuid, $5::text)) bare
"""

_REDUCED: LiteralString = """
    SELECT DISTINCT ON (session_id, exact_sha256) uuid_send(session_id), exact_sha256, raw, sha256 FROM reductions
     WHERE tenant_id = $1::uuid
       AND (session_id, exact_sha256) > ($2::uuid, $3::text) AND (session_id, exact_sha256) <= ($4::uuid, $5::text)
     ORDER BY session_id, exact_sha256, stored_at DESC, reducer_revision DESC
"""

# Foreign keys keep entries from losing their segments; a broken disk or a careless hand does not ask them.
_LOST: LiteralString = """
    SELECT session_id, segment_sha256 FROM entries
     WHERE tenant_id = $1::uuid AND segment_sha256 IS NOT NULL
       AND (session_id, segment_sha256) > ($2::uuid, $3::text) AND (session_id, segment_sha256) <= ($4::uuid, $5::text)
    EXCEPT
    SELECT session_id, sha256 FROM segments
     WHERE tenant_id = $1::uuid AND (session_id, sha256) > ($2::uuid, $3::text) AND (session_id, sha256) <= ($4::uuid, $5::text)
     ORDER BY 1, 2 LIMIT $6::int
"""

# In a session with an erased run, some segments may be on their way out. Elsewhere all is retained that a window holds: a segment
# that none holds is counted as well, and left out where it is looked at.
_SESSIONS: LiteralString = """
    SELECT s.session_id, s.acl,
           EXISTS (SELECT FROM runs r WHERE r.tenant_id = $1::uuid AND r.session_id = s.session_id AND r.erased_at IS NOT NULL)
      FROM sessions s WHERE s.tenant_id = $1::uuid AND s.erased_at IS NULL AND s.session_id = ANY ($2::uuid[])
"""

_Key = tuple[bytes, str]
"""A session's id as bytes, and a hash."""


class Expected(NamedTuple):
    """What the points of one segment are to say. A tuple, since millions are made."""

    session_id: UUID
    sha256: str
    reduced_sha256: str | None
    passages: int
    acl: tuple[str, ...]


@dataclass(slots=True)
class Page:
    """The retained segments of one stretch of keys."""

    segments: Rows
    """Bytes of the session's id, hash, text."""
    lost: list[Position]
    """Segments that windows name, and that have no row."""
    last: Position | None
    """Where the next page begins; None behind the last segment."""
    passages: dict[_Key, int] | None
    """Of each that is projected; None where they were not asked for."""
    unprojected: set[_Key]
    reduced: dict[_Key, tuple[bytes, str]]
    sessions: dict[bytes, tuple[UUID, tuple[str, ...]]]

    def doubtful(self) -> list[Position]:
        """Those that may not be whole: the text is gone or has another hash, or the reduction has, or no projection is recorded.

        This hashes every text: for a thread.
        """
        found = {
            (raw_id, sha) for raw_id, sha, raw in self.segments if raw is None or sha256(raw).hexdigest() != sha
        }  # fmt: skip
        found |= {key for key, (raw, sha) in self.reduced.items() if sha256_hex(raw) != sha}
        if self.passages is None:
            found |= self.unprojected
        else:
            found |= {(row[0], row[1]) for row in self.segments}.difference(self.passages)
        return [(self.sessions[raw_id][0], sha) for raw_id, sha in sorted(found) if raw_id in self.sessions]

    def expected(self) -> list[Expected]:
        """What the index is to hold of those that are projected, where passages were asked for."""
        found: list[Expected] = []
        passages, reduced = self.passages or {}, self.reduced
        for raw_id, sha, _ in self.segments:
            key = (raw_id, sha)
            number = passages.get(key)
            if number is not None:
                session_id, acl = self.sessions[raw_id]
                found.append(Expected(session_id, sha, reduced[key][1] if key in reduced else None, number, acl))
        return found


async def stream_retained(
    database: Database, scope: TenantScope, generation: int, *, with_passages: bool, most: int = MOST_SEGMENTS
) -> AsyncIterator[Page]:
    """Every retained segment once, by session and hash, each page in a transaction of its own. Raises StoreUnavailable.

    The database reads the next page while the caller looks at one.
    """

    def begin(after: Position, limit: int) -> asyncio.Task[Page]:
        work = partial(page, generation=generation, with_passages=with_passages, after=after, limit=min(limit, most))
        return asyncio.create_task(database.work(scope, work))

    coming: asyncio.Task[Page] | None = begin(BEFORE_ALL, FIRST_SEGMENTS)
    try:
        while coming is not None:
            found = await coming
            coming = None if found.last is None else begin(found.last, _limit_after(found))
            if found.segments or found.lost:
                yield found
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


async def page(tx: WorkerTransaction, *, generation: int, with_passages: bool, after: Position, limit: int) -> Page:
    """The next ``limit`` segments, or fewer, without those that are not retained."""
    walk = _Walk(tx.scope.tenant_id, generation, with_passages, after, limit)
    found, with_erased = await binary.read(tx.connection, walk.read)
    if with_erased:
        asked = [(found.sessions[row[0]][0], row[1]) for row in found.segments if row[0] in with_erased]
        held = set(await held_of(tx, asked))
        found.segments = [row for row in found.segments if row[0] not in with_erased or (found.sessions[row[0]][0], row[1]) in held]
        kept = {(row[0], row[1]) for row in found.segments}
        found.unprojected &= kept
        found.reduced = {key: one for key, one in found.reduced.items() if key in kept}
    found.lost = await held_of(tx, found.lost)
    return found


@dataclass(frozen=True, slots=True)
class _Walk:
    """One page's statements, for the thread that reads it."""

    tenant_id: UUID
    generation: int
    with_passages: bool
    after: Position
    limit: int

    def read(self, reader: Reader) -> tuple[Page, set[bytes]]:
        """The page, and which of its sessions have erased runs."""
        reader.fetch(_BY_KEY)
        found = reader.fetch(_SEGMENTS, self.tenant_id, *self.after, self.limit)
        last = (UUID(bytes=found[-1][0]), found[-1][1]) if len(found) == self.limit else BEHIND_ALL
        lost = [(row[0], row[1]) for row in reader.fetch(_LOST, self.tenant_id, *self.after, *last, LOST_LIMIT)]
        if len(lost) == LOST_LIMIT:
            last = lost[-1]
            end = (last[0].bytes, last[1])
            found = [row for row in found if (row[0], row[1]) <= end]
        within = (self.tenant_id, *self.after, *last)
        sessions = reader.fetch(_SESSIONS, self.tenant_id, [UUID(bytes=raw_id) for raw_id in {row[0] for row in found}])
        standing = {session_id.bytes: (session_id, tuple(acl)) for session_id, acl, _ in sessions}
        read = Page(
            segments=found if len(standing) == len({row[0] for row in found}) else [row for row in found if row[0] in standing],
            lost=lost,
            last=None if last == BEHIND_ALL else last,
            passages=None,
            unprojected=set(),
            reduced={(row[0], row[1]): (row[2], row[3]) for row in reader.fetch(_REDUCED, *within)},
            sessions=standing,
        )
        if self.with_passages:
            read.passages = {(row[0], row[1]): row[2] for row in reader.fetch(_PASSAGES, *within, self.generation)}
        else:
            read.unprojected = {(row[0], row[1]) for row in reader.fetch(_UNPROJECTED, *within, self.generation)}
        return read, {session_id.bytes for session_id, _, has_erased in sessions if has_erased}


def _limit_after(page: Page) -> int:
    size_bytes = sum(len(row[2]) for row in page.segments if row[2] is not None)
    return max(FIRST_SEGMENTS, PAGE_BYTES * len(page.segments) // max(1, size_bytes))
