"""What an index names, as the database has it: each segment's text with its newest readable entry, in one question."""

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

_FIND: LiteralString = """
    SELECT g.session_id, g.sha256, g.raw, g.chars, g.rule_revision, g.stored_at,
           d.raw, d.sha256, d.reducer_revision, d.verdicts,
           newest.manifest_id, newest.ordinal, newest.role, newest.kind, newest.occurred_at, newest.created_at, newest.principal_id
      FROM unnest(CAST(%(session_ids)s AS uuid[]), CAST(%(shas)s AS text[])) AS asked(session_id, sha256)
      JOIN segments g ON g.tenant_id = %(tenant)s AND g.session_id = asked.session_id AND g.sha256 = asked.sha256
       AND g.raw IS NOT NULL
      LEFT JOIN LATERAL (
           SELECT raw, sha256, reducer_revision, verdicts FROM reductions
            WHERE tenant_id = %(tenant)s AND session_id = g.session_id AND exact_sha256 = g.sha256
            ORDER BY stored_at DESC, reducer_revision DESC LIMIT 1
           ) d ON true
     CROSS JOIN LATERAL (
           SELECT e.manifest_id, e.ordinal, e.role, e.kind, e.occurred_at, r.created_at, r.principal_id
             FROM entries e JOIN runs r ON r.tenant_id = e.tenant_id AND r.manifest_id = e.manifest_id
            WHERE e.tenant_id = %(tenant)s AND e.session_id = g.session_id AND e.segment_sha256 = g.sha256
              AND r.erased_at IS NULL
            ORDER BY r.created_at DESC, r.manifest_id DESC, e.ordinal DESC LIMIT 1
           ) newest
"""


async def find_candidates(
    tx: ReadTransaction, keys: Sequence[tuple[UUID, str]]
) -> dict[tuple[UUID, str], tuple[StoredSegment, EntryRef]]:
    """Those of the (session, segment) that may be read, have their text, and stand in a window that was not erased."""
    distinct = list(dict.fromkeys(keys))
    if not distinct:
        return {}
    parameters = {"tenant": tx.scope.tenant_id, "session_ids": [s for s, _ in distinct], "shas": [sha for _, sha in distinct]}
    found: dict[Key, tuple[StoredSegment, EntryRef]] = {}
    for row in await binary.fetch(tx.connection, _FIND, parameters):
        session_id, sha, raw, chars, rules, stored_at, reduced_raw, reduced_sha, reducer, verdicts = row[:10]
        manifest_id, ordinal, role, kind, occurred_at, created_at, principal_id = row[10:]
        reduction = None if reduced_sha is None else Reduction(sha, reduced_raw, reduced_sha, reducer, verdicts)
        found[session_id, sha] = (
            StoredSegment(Segment(raw, sha, chars, rules), stored_at, reduction),
            EntryRef(manifest_id, ordinal, role, PartKind(kind), occurred_at, created_at, principal_id),
        )
    return found
