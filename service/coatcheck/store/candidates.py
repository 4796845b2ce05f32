"""What an index names, as the database has it: each segment's text with its newest readable entry, in one question.

The question is flat and leaves out what nobody asked for: under row security every table that it names is several to the planner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from coatcheck.domain.messages import PartKind
from coatcheck.domain.segments import Reduction, Segment
from coatcheck.store import binary
from coatcheck.store.database import ReadTransaction
from coatcheck.store.entries import EntryRef
from coatcheck.store.segments import StoredSegment

Key = tuple[UUID, str]
"""Session and hash."""

_COLUMNS: LiteralString = """
    SELECT g.session_id, g.sha256, g.raw, g.chars, g.rule_revision, g.stored_at,
           newest.manifest_id, newest.ordinal, newest.role, newest.kind, newest.occurred_at, newest.created_at, newest.principal_id
"""

_FROM: LiteralString = """
      FROM (SELECT DISTINCT ON (e.session_id, e.segment_sha256)
                   e.session_id, e.segment_sha256, e.manifest_id, e.ordinal, e.role, e.kind, e.occurred_at,
                   r.created_at, r.principal_id
              FROM unnest(CAST(%(session_ids)s AS uuid[]), CAST(%(shas)s AS text[])) AS asked(session_id, sha256)
              JOIN entries e ON e.tenant_id = %(tenant)s AND e.session_id = asked.session_id AND e.segment_sha256 = asked.sha256
              JOIN runs r ON r.tenant_id = %(tenant)s AND r.manifest_id = e.manifest_id AND r.erased_at IS NULL
             ORDER BY e.session_id, e.segment_sha256, r.created_at DESC, r.manifest_id DESC, e.ordinal DESC
           ) newest
      JOIN segments g ON g.tenant_id = %(tenant)s AND g.session_id = newest.session_id AND g.sha256 = newest.segment_sha256
       AND g.raw IS NOT NULL
"""

_REDUCED: LiteralString = """
      LEFT JOIN LATERAL (
           SELECT raw, sha256, reducer_revision, verdicts FROM reductions
            WHERE tenant_id = %(tenant)s AND session_id = g.session_id AND exact_sha256 = g.sha256
            ORDER BY stored_at DESC, reducer_revision DESC LIMIT 1
           ) d ON true
"""

_FIND: LiteralString = _COLUMNS + _FROM
_FIND_REDUCED: LiteralString = _COLUMNS + ", d.raw, d.sha256, d.reducer_revision, d.verdicts" + _FROM + _REDUCED


async def find_candidates(
    tx: ReadTransaction, keys: Sequence[Key], *, reduced: bool = False
) -> dict[Key, tuple[StoredSegment, EntryRef]]:
    """Those of the (session, segment) that may be read, have their text, and stand in a window that was not erased.

    Their reductions are looked for where ``reduced`` says so.
    """
    distinct = list(dict.fromkeys(keys))
    if not distinct:
        return {}
    parameters = {"tenant": tx.scope.tenant_id, "session_ids": [s for s, _ in distinct], "shas": [sha for _, sha in distinct]}
    found: dict[Key, tuple[StoredSegment, EntryRef]] = {}
    for row in await binary.fetch(tx.connection, _FIND_REDUCED if reduced else _FIND, parameters, prepare=True):
        session_id, sha, raw, chars, rules, stored_at = row[:6]
        manifest_id, ordinal, role, kind, occurred_at, created_at, principal_id = row[6:13]
        reduction = Reduction(sha, *row[13:]) if reduced and row[14] is not None else None
        found[session_id, sha] = (
            StoredSegment(Segment(raw, sha, chars, rules), stored_at, reduction),
            EntryRef(manifest_id, ordinal, role, PartKind(kind), occurred_at, created_at, principal_id),
        )
    return found
