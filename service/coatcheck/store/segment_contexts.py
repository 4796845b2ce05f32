"""What surrounds a segment: its first entry in the session, the turns before, and everywhere it stands.

The context goes into the lexical vector, and is the same however often the text comes again: it is the *first* entry's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.canonical import decode
from coatcheck.domain.messages import Role
from coatcheck.store.database import WorkerTransaction

PREVIOUS_TEXT_MAX_CHARS = 1_000
PREVIOUS_TURNS = 2
_LOOK_BACK = 64
"""Entries looked back over: a turn behind one longer than this is not looked for."""
_BYTES_PER_CHAR_MAX = 4

# Grouped once, and the first entry then looked up by its key: a join of the two would be left to the planner's luck on tables
# that have grown since it last counted. ``previous`` holds the last stretch of text of the messages before, newest first.
_CONTEXTS = sa.text("""
    WITH standing AS (
        SELECT e.segment_sha256,
               (array_agg(e.manifest_id ORDER BY r.created_at, e.manifest_id, e.ordinal))[1] AS manifest_id,
               (array_agg(e.ordinal ORDER BY r.created_at, e.manifest_id, e.ordinal))[1] AS ordinal,
               min(coalesce(e.occurred_at, r.created_at)) AS first_at,
               max(coalesce(e.occurred_at, r.created_at)) AS last_at,
               array_agg(DISTINCT e.role ORDER BY e.role) AS roles,
               array_agg(DISTINCT e.kind ORDER BY e.kind) AS kinds
          FROM entries e JOIN runs r ON r.tenant_id = e.tenant_id AND r.manifest_id = e.manifest_id
         WHERE e.tenant_id = :tenant AND e.session_id = :session AND e.segment_sha256 = ANY (:shas) AND r.erased_at IS NULL
         GROUP BY e.segment_sha256
    )
    SELECT standing.*, first.role, first.kind, first.name, first.occurred_at, previous.heads AS previous_heads
      FROM standing
      JOIN entries first
        ON first.tenant_id = :tenant AND first.manifest_id = standing.manifest_id AND first.ordinal = standing.ordinal
      LEFT JOIN LATERAL (
           SELECT array_agg(substring(g.raw FROM 1 FOR :head_bytes) ORDER BY turn.message_index DESC)
                    FILTER (WHERE g.raw IS NOT NULL) AS heads
             FROM (SELECT DISTINCT ON (p.message_index) p.message_index, p.segment_sha256
                     FROM entries p
                    WHERE p.tenant_id = :tenant AND p.manifest_id = first.manifest_id
                      AND p.ordinal >= first.ordinal - :look_back AND p.ordinal < first.ordinal
                      AND p.message_index < first.message_index AND p.kind IN ('text', 'tool_call', 'tool_result')
                      AND p.segment_sha256 IS NOT NULL
                    ORDER BY p.message_index DESC, p.ordinal DESC LIMIT :turns) turn
             JOIN segments g ON g.tenant_id = :tenant AND g.session_id = :session AND g.sha256 = turn.segment_sha256
           ) previous ON true
""")


@dataclass(frozen=True, slots=True)
class SegmentContext:
    """Where a segment first stood and what came before it; times, roles and kinds in the plural are of everywhere it stands."""

    manifest_id: UUID
    ordinal: int
    role: Role
    kind: str
    name: str | None
    occurred_at: datetime | None
    first_at: datetime
    """The earliest; a window's arrival where its message had no time of its own."""
    last_at: datetime
    roles: tuple[str, ...]
    kinds: tuple[str, ...]
    previous_texts: tuple[str, ...]
    """Of the turns before, newest first."""


async def contexts(tx: WorkerTransaction, session_id: UUID, shas: Sequence[str]) -> dict[str, SegmentContext]:
    """The context of each segment that some living run of the session holds."""
    if not shas:
        return {}
    parameters = {
        "tenant": tx.scope.tenant_id,
        "session": session_id,
        "shas": list(dict.fromkeys(shas)),
        "head_bytes": PREVIOUS_TEXT_MAX_CHARS * _BYTES_PER_CHAR_MAX,
        "look_back": _LOOK_BACK,
        "turns": PREVIOUS_TURNS,
    }
    return {row.segment_sha256: _context(row) for row in await tx.connection.execute(_CONTEXTS, parameters)}


def _context(row: sa.Row[Any]) -> SegmentContext:
    return SegmentContext(
        manifest_id=row.manifest_id,
        ordinal=row.ordinal,
        role=row.role,
        kind=row.kind,
        name=None if row.name is None else decode(row.name),
        occurred_at=row.occurred_at,
        first_at=row.first_at,
        last_at=row.last_at,
        roles=tuple(row.roles),
        kinds=tuple(row.kinds),
        previous_texts=tuple(_head(head) for head in row.previous_heads or ()),
    )


def _head(raw: bytes) -> str:
    """The first code points of bytes that may end inside one."""
    for end in range(len(raw), max(len(raw) - _BYTES_PER_CHAR_MAX, 0), -1):
        try:
            return decode(raw[:end])[:PREVIOUS_TEXT_MAX_CHARS]
        except UnicodeDecodeError:
            continue
    return ""
