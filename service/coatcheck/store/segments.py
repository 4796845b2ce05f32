"""Segments, their reductions, and blobs: the exact bytes, unique within their session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.canonical import sha256_hex
from coatcheck.domain.segments import Blob, Reduction, Segment
from coatcheck.store import bulk, tables
from coatcheck.store.database import AnyTransaction, AnyWriteTransaction, WorkerTransaction

_IN_SESSION = ("tenant_id", "session_id")

_INSERT = bulk.insert(tables.segments, shared=_IN_SESSION, each=("sha256", "raw", "chars", "rule_revision"))

_INSERT_REDUCTIONS = bulk.insert(
    tables.reductions, shared=_IN_SESSION, each=("exact_sha256", "reducer_revision", "raw", "sha256", "verdicts")
)

_INSERT_BLOBS = bulk.insert(tables.blobs, shared=_IN_SESSION, each=("sha256", "media_type", "raw"))

_FIND = sa.text("""
    SELECT g.session_id, g.sha256, g.raw, g.chars, g.rule_revision, g.stored_at,
           d.raw AS reduced_raw, d.sha256 AS reduced_sha256, d.reducer_revision, d.verdicts
      FROM unnest(CAST(:session_ids AS uuid[]), CAST(:shas AS text[])) AS asked(session_id, sha256)
      JOIN segments g ON g.tenant_id = :tenant AND g.session_id = asked.session_id AND g.sha256 = asked.sha256
      LEFT JOIN LATERAL (
           SELECT raw, sha256, reducer_revision, verdicts FROM reductions
            WHERE tenant_id = g.tenant_id AND session_id = g.session_id AND exact_sha256 = g.sha256
            ORDER BY stored_at DESC, reducer_revision DESC LIMIT 1
           ) d ON true
""")

# Bounds instead of LIKE: under row security an index serves only operators that leak nothing, and LIKE is not one of them.
_BY_PREFIX = sa.text("""
    SELECT DISTINCT ON (sha256) session_id, sha256 FROM segments
     WHERE tenant_id = :tenant AND sha256 ~>=~ :low AND sha256 ~<~ :high AND raw IS NOT NULL
       AND (CAST(:within AS uuid[]) IS NULL OR session_id = ANY (:within))
     ORDER BY sha256, stored_at DESC, session_id LIMIT 3
""")

_DELETE_UNREFERENCED_SEGMENTS = sa.text("""
    DELETE FROM segments
     WHERE tenant_id = :tenant AND session_id = :session
       AND sha256 = ANY (ARRAY(
           SELECT sha256 FROM segments WHERE tenant_id = :tenant AND session_id = :session
           EXCEPT
           SELECT segment_sha256 FROM entries
            WHERE tenant_id = :tenant AND session_id = :session AND segment_sha256 IS NOT NULL))
    RETURNING sha256
""")

_DELETE_UNREFERENCED_BLOBS = sa.text("""
    DELETE FROM blobs
     WHERE tenant_id = :tenant AND session_id = :session
       AND sha256 = ANY (ARRAY(
           SELECT sha256 FROM blobs WHERE tenant_id = :tenant AND session_id = :session
           EXCEPT
           SELECT blob_sha256 FROM entries
            WHERE tenant_id = :tenant AND session_id = :session AND blob_sha256 IS NOT NULL))
""")

_BLOB_TEXTS = sa.text("SELECT sha256, raw FROM blobs WHERE tenant_id = :tenant AND session_id = :session AND sha256 = ANY (:shas)")

_DELETE_REDUCTIONS = sa.text("""
    DELETE FROM reductions WHERE tenant_id = :tenant AND session_id = :session AND exact_sha256 = ANY (:shas)
""")

_SET_RULE_REVISION = sa.text("""
    UPDATE segments SET rule_revision = :revision
     WHERE tenant_id = :tenant AND rule_revision <> :revision
       AND session_id = (SELECT session_id FROM runs WHERE tenant_id = :tenant AND manifest_id = :manifest)
       AND sha256 = ANY (ARRAY(SELECT segment_sha256 FROM entries WHERE tenant_id = :tenant AND manifest_id = :manifest))
""")


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment as it is stored, with its newest reduction."""

    segment: Segment
    stored_at: datetime
    reduction: Reduction | None

    @property
    def is_whole(self) -> bool:
        """Whether the bytes are what their hash says: nothing else is ever shown under it."""
        return sha256_hex(self.segment.raw) == self.segment.sha256


async def insert(tx: AnyWriteTransaction, session_id: UUID, segments: Iterable[Segment]) -> int:
    """Stores what the session does not have yet. Returns how many were new."""
    ordered = sorted(segments, key=lambda s: s.sha256)
    return await _insert(
        tx,
        _INSERT,
        session_id,
        sha256=[s.sha256 for s in ordered],
        raw=[s.raw for s in ordered],
        chars=[s.chars for s in ordered],
        rule_revision=[s.rule_revision for s in ordered],
    )


async def insert_reductions(tx: AnyWriteTransaction, session_id: UUID, reductions: Iterable[Reduction]) -> int:
    """Stores reductions beside their segments. Returns how many were new."""
    ordered = sorted(reductions, key=lambda r: (r.exact_sha256, r.reducer_revision))
    return await _insert(
        tx,
        _INSERT_REDUCTIONS,
        session_id,
        exact_sha256=[r.exact_sha256 for r in ordered],
        reducer_revision=[r.reducer_revision for r in ordered],
        raw=[r.raw for r in ordered],
        sha256=[r.sha256 for r in ordered],
        verdicts=[json.dumps(r.verdicts) for r in ordered],
    )


async def insert_blobs(tx: AnyWriteTransaction, session_id: UUID, blobs: Iterable[Blob]) -> int:
    """Stores what the session does not have yet. Returns how many were new."""
    ordered = sorted(blobs, key=lambda b: b.sha256)
    return await _insert(
        tx,
        _INSERT_BLOBS,
        session_id,
        sha256=[b.sha256 for b in ordered],
        media_type=[b.media_type for b in ordered],
        raw=[b.raw for b in ordered],
    )


async def find(tx: AnyTransaction, session_id: UUID, shas: Sequence[str]) -> dict[str, StoredSegment]:
    """Those of the session's segments that are there and may be read, by hash."""
    found = await find_keys(tx, [(session_id, sha) for sha in shas])
    return {sha: stored for (_, sha), stored in found.items()}


async def find_keys(tx: AnyTransaction, keys: Sequence[tuple[UUID, str]]) -> dict[tuple[UUID, str], StoredSegment]:
    """As ``find``, by session and hash, in one round trip. A segment whose bytes are missing is not there."""
    distinct = list(dict.fromkeys(keys))
    if not distinct:
        return {}
    parameters = {"tenant": tx.scope.tenant_id, "session_ids": [s for s, _ in distinct], "shas": [sha for _, sha in distinct]}
    rows = await tx.connection.execute(_FIND, parameters)
    return {(row.session_id, row.sha256): _stored(row) for row in rows if row.raw is not None}


async def by_prefix(tx: AnyTransaction, prefix: str, within: frozenset[UUID] | None = None) -> list[tuple[UUID, str]]:
    """Up to three *different* hashes that begin with these hex digits, each with the session that stored it last."""
    parameters = {
        "tenant": tx.scope.tenant_id,
        "low": prefix,
        "high": prefix + "g",  # follows every hex digit
        "within": None if within is None else list(within),
    }
    return [(row.session_id, row.sha256) for row in await tx.connection.execute(_BY_PREFIX, parameters)]


async def blob_texts(tx: AnyTransaction, session_id: UUID, shas: Sequence[str]) -> dict[str, bytes]:
    """The blobs of a session that are there and may be read, by hash."""
    if not shas:
        return {}
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "shas": list(shas)}
    return {row.sha256: row.raw for row in await tx.connection.execute(_BLOB_TEXTS, parameters)}


async def delete_unreferenced(tx: WorkerTransaction, session_id: UUID) -> list[str]:
    """Deletes segments and blobs that no entry points at. Returns the segments' hashes."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id}
    await tx.connection.execute(_DELETE_UNREFERENCED_BLOBS, parameters)
    return sorted(await tx.connection.scalars(_DELETE_UNREFERENCED_SEGMENTS, parameters))


async def delete_reductions(tx: WorkerTransaction, session_id: UUID, shas: Sequence[str]) -> None:
    """Deletes every reduction of these segments: their exact text stands."""
    await tx.connection.execute(_DELETE_REDUCTIONS, {"tenant": tx.scope.tenant_id, "session": session_id, "shas": list(shas)})


async def set_rule_revision(tx: WorkerTransaction, manifest_id: UUID, revision: str) -> None:
    """Records that a run's texts were scanned under these rules."""
    parameters = {"tenant": tx.scope.tenant_id, "manifest": manifest_id, "revision": revision}
    await tx.connection.execute(_SET_RULE_REVISION, parameters)


async def _insert(tx: AnyWriteTransaction, statement: sa.TextClause, session_id: UUID, **columns: list[Any]) -> int:
    if not next(iter(columns.values())):
        return 0
    result = await tx.connection.execute(statement, {"tenant_id": tx.scope.tenant_id, "session_id": session_id, **columns})
    return result.rowcount


def _stored(row: sa.Row[Any]) -> StoredSegment:
    reduction = None
    if row.reduced_sha256 is not None:
        reduction = Reduction(row.sha256, row.reduced_raw, row.reduced_sha256, row.reducer_revision, row.verdicts)
    return StoredSegment(Segment(row.raw, row.sha256, row.chars, row.rule_revision), row.stored_at, reduction)
