"""Entries: the order of each window."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.canonical import decode, encode
from coatcheck.domain.entries import Entry
from coatcheck.domain.messages import PartKind, Role
from coatcheck.domain.routes import Decision, Route
from coatcheck.domain.segments import Segment
from coatcheck.store import bulk, tables
from coatcheck.store.database import AnyTransaction, AnyWriteTransaction, WorkerTransaction
from coatcheck.store.segment_contexts import SegmentContext, contexts

__all__ = [
    "EntryRef", "SegmentContext", "all", "contexts", "delete", "held", "insert", "newest_for", "page", "replace_segments",
    "segments_of", "segments_of_session", "segments_only_of",
]  # fmt: skip

_EACH = (
    "ordinal", "message_index", "part_index", "segment_index", "role", "kind", "encoding", "segment_sha256", "blob_sha256",
    "handoff_manifest_id", "frame_before", "frame_after", "call_id", "group_id", "name", "occurred_at", "is_system_field",
    "chars", "route", "reason", "protection", "scores",
    "dropped_sha256",
)  # fmt: skip

_INSERT = bulk.insert(tables.entries, shared=("tenant_id", "manifest_id", "session_id"), each=_EACH)

_PAGE = sa.text(f"""
    SELECT {", ".join(_EACH)} FROM entries
     WHERE tenant_id = :tenant AND manifest_id = :manifest AND ordinal > :after
     ORDER BY ordinal LIMIT :limit
""")

_NEWEST_FOR = sa.text("""
    SELECT asked.session_id, asked.sha256, newest.*
      FROM unnest(CAST(:session_ids AS uuid[]), CAST(:shas AS text[])) AS asked(session_id, sha256)
     CROSS JOIN LATERAL (
           SELECT e.manifest_id, e.ordinal, e.role, e.kind, e.occurred_at, r.created_at AS run_created_at, r.principal_id
             FROM entries e JOIN runs r ON r.tenant_id = e.tenant_id AND r.manifest_id = e.manifest_id
            WHERE e.tenant_id = :tenant AND e.session_id = asked.session_id AND e.segment_sha256 = asked.sha256
              AND r.erased_at IS NULL
            ORDER BY r.created_at DESC, r.manifest_id DESC, e.ordinal DESC LIMIT 1
           ) newest
""")

_SEGMENTS_OF = sa.text("""
    SELECT segment_sha256 FROM entries
     WHERE tenant_id = :tenant AND manifest_id = :manifest AND segment_sha256 IS NOT NULL
     GROUP BY segment_sha256 ORDER BY min(ordinal)
""")

_SEGMENTS_OF_SESSION = sa.text("SELECT sha256 FROM segments WHERE tenant_id = :tenant AND session_id = :session ORDER BY sha256")

# A run that is erased holds nothing any more: each of two erasures at the same time takes what only they two held.
_SEGMENTS_ONLY_OF = sa.text("""
    SELECT segment_sha256 FROM entries
     WHERE tenant_id = :tenant AND manifest_id = :manifest AND segment_sha256 IS NOT NULL
    EXCEPT
    SELECT segment_sha256 FROM entries
     WHERE tenant_id = :tenant AND session_id = :session AND segment_sha256 IS NOT NULL AND manifest_id <> :manifest
       AND manifest_id <> ALL (ARRAY(
           SELECT manifest_id FROM runs WHERE tenant_id = :tenant AND session_id = :session AND erased_at IS NOT NULL))
     ORDER BY 1
""")

_HELD = sa.text("""
    SELECT DISTINCT e.segment_sha256 FROM entries e JOIN runs r ON r.tenant_id = e.tenant_id AND r.manifest_id = e.manifest_id
     WHERE e.tenant_id = :tenant AND e.session_id = :session AND e.segment_sha256 = ANY (:shas) AND r.erased_at IS NULL
""")

_DELETE = sa.text("DELETE FROM entries WHERE tenant_id = :tenant AND manifest_id = :manifest")


_REPLACE_SEGMENTS = sa.text("""
    UPDATE entries e SET segment_sha256 = row.sha256, chars = row.chars
      FROM unnest(CAST(:ordinals AS integer[]), CAST(:shas AS text[]), CAST(:chars AS integer[])) AS row(ordinal, sha256, chars)
     WHERE e.tenant_id = :tenant AND e.manifest_id = :manifest AND e.ordinal = row.ordinal
""")


@dataclass(frozen=True, slots=True)
class EntryRef:
    """Where a segment stands: one entry of one readable run."""

    manifest_id: UUID
    ordinal: int
    role: Role
    kind: PartKind
    occurred_at: datetime | None
    run_created_at: datetime
    principal_id: UUID
    """Who handed the run in."""


async def insert(tx: AnyWriteTransaction, session_id: UUID, manifest_id: UUID, entries: Sequence[Entry]) -> None:
    """Stores a run's window; the run, its segments and its blobs are there already."""
    if not entries:
        return
    columns: dict[str, list[object]] = {
        "ordinal": [e.ordinal for e in entries],
        "message_index": [e.message_index for e in entries],
        "part_index": [e.part_index for e in entries],
        "segment_index": [e.segment_index for e in entries],
        "role": [e.role for e in entries],
        "kind": [str(e.kind) for e in entries],
        "encoding": [e.encoding for e in entries],
        "segment_sha256": [e.segment_sha256 for e in entries],
        "blob_sha256": [e.blob_sha256 for e in entries],
        "handoff_manifest_id": [e.handoff_manifest_id for e in entries],
        "frame_before": [encode(e.frame_before) for e in entries],
        "frame_after": [encode(e.frame_after) for e in entries],
        "call_id": [e.call_id for e in entries],
        "group_id": [e.group_id for e in entries],
        "name": [None if e.name is None else encode(e.name) for e in entries],
        "occurred_at": [e.occurred_at for e in entries],
        "is_system_field": [e.is_system_field for e in entries],
        "chars": [e.chars for e in entries],
        "route": [str(e.decision.route) for e in entries],
        "reason": [e.decision.reason for e in entries],
        "protection": [e.decision.protection for e in entries],
        "scores": [json.dumps(dict(e.decision.scores)) if e.decision.scores else None for e in entries],
        "dropped_sha256": [e.dropped_sha256 for e in entries],
    }
    parameters = {"tenant_id": tx.scope.tenant_id, "manifest_id": manifest_id, "session_id": session_id, **columns}
    await tx.connection.execute(_INSERT, parameters)


async def page(tx: AnyTransaction, manifest_id: UUID, after_ordinal: int, limit: int) -> list[Entry]:
    """The window's entries behind an ordinal, in its order; -1 begins at its start."""
    parameters = {"tenant": tx.scope.tenant_id, "manifest": manifest_id, "after": after_ordinal, "limit": limit}
    return [_entry(row) for row in await tx.connection.execute(_PAGE, parameters)]


async def all(tx: AnyTransaction, manifest_id: UUID) -> list[Entry]:
    """The whole window, in its order."""
    parameters = {"tenant": tx.scope.tenant_id, "manifest": manifest_id, "after": -1, "limit": None}
    return [_entry(row) for row in await tx.connection.execute(_PAGE, parameters)]


async def newest_for(tx: AnyTransaction, keys: Sequence[tuple[UUID, str]]) -> dict[tuple[UUID, str], EntryRef]:
    """For each (session, segment) the last entry of its newest readable run."""
    distinct = list(dict.fromkeys(keys))
    if not distinct:
        return {}
    parameters = {"tenant": tx.scope.tenant_id, "session_ids": [s for s, _ in distinct], "shas": [sha for _, sha in distinct]}
    return {
        (row.session_id, row.sha256): EntryRef(
            row.manifest_id, row.ordinal, row.role, PartKind(row.kind), row.occurred_at, row.run_created_at, row.principal_id
        )
        for row in await tx.connection.execute(_NEWEST_FOR, parameters)
    }


async def segments_of(tx: AnyTransaction, manifest_id: UUID) -> list[str]:
    """The segments of a run, each once, in the window's order."""
    return list(await tx.connection.scalars(_SEGMENTS_OF, {"tenant": tx.scope.tenant_id, "manifest": manifest_id}))


async def segments_of_session(tx: WorkerTransaction, session_id: UUID) -> list[str]:
    """Every segment of a session."""
    return list(await tx.connection.scalars(_SEGMENTS_OF_SESSION, {"tenant": tx.scope.tenant_id, "session": session_id}))


async def segments_only_of(tx: WorkerTransaction, session_id: UUID, manifest_id: UUID) -> list[str]:
    """The segments that no other living run of the session holds: what erasing this one erases."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "manifest": manifest_id}
    return list(await tx.connection.scalars(_SEGMENTS_ONLY_OF, parameters))


async def held(tx: WorkerTransaction, session_id: UUID, sha256s: Sequence[str]) -> set[str]:
    """Those of the segments that some living run of the session holds."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "shas": list(sha256s)}
    return set(await tx.connection.scalars(_HELD, parameters))


async def delete(tx: WorkerTransaction, manifest_id: UUID) -> None:
    """Takes a run's window out, as when it is planned again."""
    await tx.connection.execute(_DELETE, {"tenant": tx.scope.tenant_id, "manifest": manifest_id})


async def replace_segments(tx: WorkerTransaction, manifest_id: UUID, by_ordinal: Mapping[int, Segment]) -> None:
    """Has these entries name other segments, which are stored already; the others stay, whatever is left of their texts."""
    parameters = {
        "tenant": tx.scope.tenant_id,
        "manifest": manifest_id,
        "ordinals": list(by_ordinal),
        "shas": [segment.sha256 for segment in by_ordinal.values()],
        "chars": [segment.chars for segment in by_ordinal.values()],
    }
    await tx.connection.execute(_REPLACE_SEGMENTS, parameters)


def _entry(row: sa.Row[Any]) -> Entry:
    return Entry(
        ordinal=row.ordinal,
        message_index=row.message_index,
        part_index=row.part_index,
        segment_index=row.segment_index,
        role=row.role,
        kind=PartKind(row.kind),
        encoding=row.encoding,
        decision=Decision(Route(row.route), row.reason, row.protection, tuple(sorted((row.scores or {}).items()))),
        segment_sha256=row.segment_sha256,
        blob_sha256=row.blob_sha256,
        handoff_manifest_id=row.handoff_manifest_id,
        frame_before=decode(row.frame_before),
        frame_after=decode(row.frame_after),
        call_id=row.call_id,
        group_id=row.group_id,
        name=None if row.name is None else decode(row.name),
        occurred_at=row.occurred_at,
        is_system_field=row.is_system_field,
        chars=row.chars,
        dropped_sha256=row.dropped_sha256,
    )
