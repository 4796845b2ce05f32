"""Erasures on record: begun with the mark, with what there is to erase; completed with the rows' end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.erasures import Erasure, ErasureKind
from coatcheck.store.database import WorkerTransaction

_COLUMNS = """erasure_id, tenant_id, kind, target_id, session_id, owner_id, requested_by, reason, requested_at, counts,
    completed_at, journal_mac, key_version, tag"""

_BEGIN = sa.text("""
    INSERT INTO erasures (tenant_id, erasure_id, kind, target_id, session_id, owner_id, requested_by, reason, requested_at, counts)
    VALUES (:tenant, :erasure, :kind, :target, :session, :owner, :requested_by, :reason, :requested_at, CAST(:counts AS jsonb))
    ON CONFLICT DO NOTHING
""")

_COMPLETE = sa.text("""
    UPDATE erasures SET completed_at = :completed_at, journal_mac = :journal_mac, key_version = :key_version, tag = :tag,
                        counts = CAST(:counts AS jsonb)
     WHERE tenant_id = :tenant AND erasure_id = :erasure AND completed_at IS NULL
""")

_NOTE_COUNTS = sa.text("""
    UPDATE erasures SET counts = CAST(:counts AS jsonb) WHERE tenant_id = :tenant AND erasure_id = :erasure AND counts = '{}'
""")

_FIND = sa.text(f"SELECT {_COLUMNS} FROM erasures WHERE tenant_id = :tenant AND erasure_id = :erasure")

_OF_TARGET = sa.text(f"SELECT {_COLUMNS} FROM erasures WHERE tenant_id = :tenant AND kind = :kind AND target_id = :target")

_COUNT_SESSION = sa.text("""
    SELECT 1 AS sessions,
           (SELECT count(*) FROM runs WHERE tenant_id = :tenant AND session_id = :session) AS manifests,
           (SELECT count(*) FROM entries WHERE tenant_id = :tenant AND session_id = :session) AS entries,
           (SELECT count(*) FROM segments WHERE tenant_id = :tenant AND session_id = :session) AS segments,
           (SELECT count(*) FROM reductions WHERE tenant_id = :tenant AND session_id = :session) AS reductions,
           (SELECT count(*) FROM blobs WHERE tenant_id = :tenant AND session_id = :session) AS blobs,
           (SELECT coalesce(sum(passages), 0) FROM projections WHERE tenant_id = :tenant AND session_id = :session) AS points
""")

_COUNT_MANIFEST = sa.text("""
    SELECT 0 AS sessions, 1 AS manifests,
           (SELECT count(*) FROM entries WHERE tenant_id = :tenant AND manifest_id = :manifest) AS entries,
           cardinality(CAST(:shas AS text[])) AS segments,
           (SELECT count(*) FROM reductions
             WHERE tenant_id = :tenant AND session_id = :session AND exact_sha256 = ANY (:shas)) AS reductions,
           (SELECT count(DISTINCT e.blob_sha256) FROM entries e
             WHERE e.tenant_id = :tenant AND e.manifest_id = :manifest AND e.blob_sha256 IS NOT NULL
               AND NOT EXISTS (SELECT FROM entries o
                                WHERE o.tenant_id = :tenant AND o.session_id = :session AND o.blob_sha256 = e.blob_sha256
                                  AND o.manifest_id <> :manifest)) AS blobs,
           (SELECT coalesce(sum(passages), 0) FROM projections
             WHERE tenant_id = :tenant AND session_id = :session AND segment_sha256 = ANY (:shas)) AS points
""")


async def begin(tx: WorkerTransaction, erasure: Erasure) -> None:
    """Puts it on record. One that is on record stays as it is."""
    await tx.connection.execute(
        _BEGIN,
        {
            "tenant": tx.scope.tenant_id,
            "erasure": erasure.erasure_id,
            "kind": erasure.kind,
            "target": erasure.target_id,
            "session": erasure.session_id,
            "owner": erasure.owner_id,
            "requested_by": erasure.requested_by,
            "reason": erasure.reason,
            "requested_at": erasure.requested_at,
            "counts": json.dumps(dict(erasure.counts)),
        },
    )


async def complete(tx: WorkerTransaction, erasure: Erasure) -> None:
    """Completes the record. One that is complete stays as it is: whoever erases twice does it once."""
    await tx.connection.execute(
        _COMPLETE,
        {
            "tenant": tx.scope.tenant_id,
            "erasure": erasure.erasure_id,
            "completed_at": erasure.completed_at,
            "journal_mac": erasure.journal_mac,
            "key_version": erasure.key_version,
            "tag": erasure.tag,
            "counts": json.dumps(dict(erasure.counts)),
        },
    )


async def note_counts(tx: WorkerTransaction, erasure_id: UUID, counts: Mapping[str, int]) -> None:
    """What there is to erase, where the record does not say so yet: a later look would count what is left."""
    parameters = {"tenant": tx.scope.tenant_id, "erasure": erasure_id, "counts": json.dumps(dict(counts))}
    await tx.connection.execute(_NOTE_COUNTS, parameters)


async def find(tx: WorkerTransaction, erasure_id: UUID) -> Erasure | None:
    parameters = {"tenant": tx.scope.tenant_id, "erasure": erasure_id}
    return _erasure_or_none((await tx.connection.execute(_FIND, parameters)).one_or_none())


async def of_target(tx: WorkerTransaction, kind: ErasureKind, target_id: UUID) -> Erasure | None:
    """The erasure of this session, manifest or tenant."""
    parameters = {"tenant": tx.scope.tenant_id, "kind": kind, "target": target_id}
    return _erasure_or_none((await tx.connection.execute(_OF_TARGET, parameters)).one_or_none())


async def count_session(tx: WorkerTransaction, session_id: UUID) -> dict[str, int]:
    """What hangs on a session: rows by kind, and the points that are recorded of it."""
    row = (await tx.connection.execute(_COUNT_SESSION, {"tenant": tx.scope.tenant_id, "session": session_id})).one()
    return _counts(row)


async def count_manifest(tx: WorkerTransaction, session_id: UUID, manifest_id: UUID, shas: Sequence[str]) -> dict[str, int]:
    """As ``count_session``, of a run with the segments that only it holds."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "manifest": manifest_id, "shas": list(shas)}
    return _counts((await tx.connection.execute(_COUNT_MANIFEST, parameters)).one())


def _counts(row: sa.Row[Any]) -> dict[str, int]:
    return {name: int(value) for name, value in row._mapping.items()}


def _erasure_or_none(row: sa.Row[Any] | None) -> Erasure | None:
    return None if row is None else Erasure(**row._mapping)
