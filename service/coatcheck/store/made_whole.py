"""Texts that were lost in their row and have come again: the row gets them back."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.segments import Blob, Segment
from coatcheck.store import bulk, tables
from coatcheck.store.database import WorkerTransaction

_BROKEN_SEGMENTS = sa.text("""
    SELECT sha256 FROM segments
     WHERE tenant_id = :tenant AND session_id = :session AND sha256 = ANY (:shas)
       AND (raw IS NULL OR encode(sha256(raw), 'hex') <> sha256)
""")

_BROKEN_BLOBS = sa.text("""
    SELECT sha256 FROM blobs
     WHERE tenant_id = :tenant AND session_id = :session AND sha256 = ANY (:shas) AND encode(sha256(raw), 'hex') <> sha256
""")

_RESTORE_SEGMENTS = sa.text(f"""
    UPDATE segments s SET raw = row.raw, chars = row.chars, rule_revision = row.rule_revision
      FROM {bulk.unnested(tables.segments, ("sha256", "raw", "chars", "rule_revision"))}
     WHERE s.tenant_id = :tenant AND s.session_id = :session AND s.sha256 = row.sha256
""")

_RESTORE_BLOBS = sa.text(f"""
    UPDATE blobs b SET raw = row.raw
      FROM {bulk.unnested(tables.blobs, ("sha256", "raw"))}
     WHERE b.tenant_id = :tenant AND b.session_id = :session AND b.sha256 = row.sha256
""")


async def make_whole(tx: WorkerTransaction, session_id: UUID, segments: Iterable[Segment], blobs: Iterable[Blob]) -> int:
    """Gives back to their rows those of the texts that the session holds no longer as they were. Returns how many."""
    by_sha, blob_by_sha = {s.sha256: s for s in segments}, {b.sha256: b for b in blobs}
    named = {"tenant": tx.scope.tenant_id, "session": session_id}
    broken = sorted(await tx.connection.scalars(_BROKEN_SEGMENTS, {**named, "shas": list(by_sha)}))
    if broken:
        found = [by_sha[sha] for sha in broken]
        columns = {
            "sha256": broken,
            "raw": [s.raw for s in found],
            "chars": [s.chars for s in found],
            "rule_revision": [s.rule_revision for s in found],
        }
        await tx.connection.execute(_RESTORE_SEGMENTS, {**named, **columns})
    broken_blobs = sorted(await tx.connection.scalars(_BROKEN_BLOBS, {**named, "shas": list(blob_by_sha)})) if blob_by_sha else []
    if broken_blobs:
        raw = [blob_by_sha[sha].raw for sha in broken_blobs]
        await tx.connection.execute(_RESTORE_BLOBS, {**named, "sha256": broken_blobs, "raw": raw})
    return len(broken) + len(broken_blobs)
