"""Runs: one compaction each, and its handoff. Their leases stand in ``run_leases``, and are had from here too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.runs import Handoff, Run, RunCounts
from coatcheck.store.database import AnyTransaction, AnyWriteTransaction, WorkerTransaction
from coatcheck.store.run_leases import acknowledge, release, renew, take_over, void_leases, writing_until
from coatcheck.store.run_rows import handoff_columns, run_of_row

__all__ = [
    "RunIdentity", "acknowledge", "delete", "find", "find_by_request", "handoffs_by_sha", "identities", "insert", "latest",
    "mark_erased", "page", "quoting", "release", "renew", "replace_handoff", "set_counts", "set_rule_revision", "standing",
    "take_over", "void_leases", "with_older_rules", "writing_until",
]  # fmt: skip

_COLUMNS = """manifest_id, session_id, principal_id, parent_manifest_id, idempotency_key, request_digest, status, lease_owner,
    lease_fence, lease_until, window_format, max_handoff_chars, handoff_text, handoff_sha256, handoff, counts, revisions,
    warnings, timings_ms, passages, generation, created_at, acknowledged_at, erased_at"""

_FIND = sa.text(f"SELECT {_COLUMNS} FROM runs WHERE tenant_id = :tenant AND manifest_id = :manifest")

_FIND_BY_REQUEST = sa.text(f"""
    SELECT {_COLUMNS} FROM runs
     WHERE tenant_id = :tenant AND principal_id = :principal AND session_id = :session AND idempotency_key = :key
""")

_LATEST = sa.text(f"""
    SELECT {_COLUMNS} FROM runs
     WHERE tenant_id = :tenant AND session_id = :session AND erased_at IS NULL
     ORDER BY created_at DESC, manifest_id DESC LIMIT 1
""")

_PAGE = sa.text(f"""
    SELECT {_COLUMNS} FROM runs
     WHERE tenant_id = :tenant AND session_id = :session AND erased_at IS NULL
       AND (CAST(:after_at AS timestamptz) IS NULL OR (created_at, manifest_id) > (:after_at, CAST(:after_id AS uuid)))
     ORDER BY created_at, manifest_id
     LIMIT :limit
""")

_INSERT = sa.text("""
    INSERT INTO runs (tenant_id, manifest_id, session_id, principal_id, parent_manifest_id, idempotency_key, request_digest,
                      status, lease_owner, lease_fence, lease_until, window_format, max_handoff_chars, handoff_text,
                      handoff_sha256, handoff, counts, revisions, warnings, timings_ms, passages, generation, created_at,
                      acknowledged_at)
    VALUES (:tenant, :manifest, :session, :principal, :parent, :idempotency_key, :request_digest,
            :status, :lease_owner, :lease_fence, :lease_until, :window_format, :max_handoff_chars, :handoff_text,
            :handoff_sha256, :handoff, CAST(:counts AS jsonb), CAST(:revisions AS jsonb), CAST(:warnings AS jsonb),
            CAST(:timings_ms AS jsonb), :passages, :generation, :created_at, :acknowledged_at)
    ON CONFLICT DO NOTHING
""")

_HANDOFFS_BY_SHA = sa.text("""
    SELECT handoff_sha256 AS sha256, manifest_id FROM runs
     WHERE tenant_id = :tenant AND session_id = :session AND handoff_sha256 = ANY (:shas) AND erased_at IS NULL
    UNION ALL
    SELECT split_part(key, '/', 2), manifest_id FROM tombstones
     WHERE tenant_id = :tenant AND kind = 'handoff' AND manifest_id IS NOT NULL
       AND key = ANY (ARRAY(SELECT concat(CAST(:session AS text), '/', sha256) FROM unnest(CAST(:shas AS text[])) AS asked(sha256)))
""")

_REPLACE_HANDOFF = sa.text("""
    UPDATE runs SET handoff_text = :handoff_text, handoff_sha256 = :handoff_sha256, handoff = :handoff
     WHERE tenant_id = :tenant AND manifest_id = :manifest
""")

_SET_RULE_REVISION = sa.text("""
    UPDATE runs SET revisions = revisions || jsonb_build_object('redaction', CAST(:revision AS text))
     WHERE tenant_id = :tenant AND manifest_id = :manifest
""")

_SET_COUNTS = sa.text("UPDATE runs SET counts = CAST(:counts AS jsonb) WHERE tenant_id = :tenant AND manifest_id = :manifest")

_MARK_ERASED = sa.text(f"""
    UPDATE runs SET erased_at = :at WHERE tenant_id = :tenant AND manifest_id = :manifest AND erased_at IS NULL
    RETURNING {_COLUMNS}
""")

_DELETE = sa.text("DELETE FROM runs WHERE tenant_id = :tenant AND manifest_id = :manifest")

_IDENTITIES = sa.text("""
    SELECT manifest_id, idempotency_key FROM runs
     WHERE tenant_id = :tenant AND session_id = :session AND erased_at IS NULL
     ORDER BY created_at, manifest_id
""")

_WITH_OLDER_RULES = sa.text(f"""
    SELECT {_COLUMNS} FROM runs r
     WHERE tenant_id = :tenant AND erased_at IS NULL AND (CAST(:after AS uuid) IS NULL OR manifest_id > :after)
       AND (revisions->>'redaction' IS DISTINCT FROM :revision
            OR EXISTS (SELECT FROM entries e
                         JOIN segments g
                           ON g.tenant_id = e.tenant_id AND g.session_id = e.session_id AND g.sha256 = e.segment_sha256
                        WHERE e.tenant_id = r.tenant_id AND e.manifest_id = r.manifest_id AND g.rule_revision <> :revision))
       AND EXISTS (SELECT FROM sessions s
                    WHERE s.tenant_id = r.tenant_id AND s.session_id = r.session_id AND s.erased_at IS NULL)
     ORDER BY manifest_id
     LIMIT :limit
""")

_STANDING = sa.text("""
    SELECT manifest_id FROM runs WHERE tenant_id = :tenant AND manifest_id = ANY (CAST(:manifests AS uuid[])) AND erased_at IS NULL
""")

_OTHER_RUNS = sa.text(f"""
    SELECT {_COLUMNS} FROM runs
     WHERE tenant_id = :tenant AND session_id = :session AND manifest_id <> :manifest AND erased_at IS NULL
     ORDER BY created_at, manifest_id
""")

_HOLDERS = sa.text("""
    SELECT DISTINCT manifest_id, segment_sha256 AS sha256 FROM entries
     WHERE tenant_id = :tenant AND session_id = :session
       AND segment_sha256 = ANY (ARRAY(SELECT segment_sha256 FROM entries WHERE tenant_id = :tenant AND manifest_id = :manifest))
""")


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What a run is known by."""

    manifest_id: UUID
    idempotency_key: str


async def find(tx: AnyTransaction, manifest_id: UUID) -> Run | None:
    """The run, when it may be read. A worker also finds an erased one whose rows are not gone yet."""
    return _run_or_none(await tx.connection.execute(_FIND, _of(tx, manifest_id)))


async def find_by_request(tx: AnyTransaction, session_id: UUID, principal_id: UUID, idempotency_key: str) -> Run | None:
    """The run of the same request."""
    parameters = {"tenant": tx.scope.tenant_id, "principal": principal_id, "session": session_id, "key": idempotency_key}
    return _run_or_none(await tx.connection.execute(_FIND_BY_REQUEST, parameters))


async def standing(tx: AnyTransaction, manifest_ids: Iterable[UUID]) -> set[UUID]:
    """Those of the runs that may be read and are not erased."""
    asked = list(dict.fromkeys(manifest_ids))
    if not asked:
        return set()
    return set(await tx.connection.scalars(_STANDING, {"tenant": tx.scope.tenant_id, "manifests": asked}))


async def latest(tx: AnyTransaction, session_id: UUID) -> Run | None:
    """The session's newest run, acknowledged or not."""
    return _run_or_none(await tx.connection.execute(_LATEST, {"tenant": tx.scope.tenant_id, "session": session_id}))


async def page(tx: AnyTransaction, session_id: UUID, after: tuple[datetime, UUID] | None, limit: int) -> list[Run]:
    """The session's runs, oldest first, behind ``after`` (created at, manifest id)."""
    at, manifest_id = after or (None, None)
    parameters = {
        "tenant": tx.scope.tenant_id, "session": session_id, "after_at": at, "after_id": manifest_id, "limit": limit,
    }  # fmt: skip
    return [run_of_row(row) for row in await tx.connection.execute(_PAGE, parameters)]


async def identities(tx: WorkerTransaction, session_id: UUID) -> list[RunIdentity]:
    """What the session's runs are known by, oldest first."""
    rows = await tx.connection.execute(_IDENTITIES, {"tenant": tx.scope.tenant_id, "session": session_id})
    return [RunIdentity(row.manifest_id, row.idempotency_key) for row in rows]


async def with_older_rules(tx: WorkerTransaction, revision: str, after: UUID | None, limit: int) -> list[Run]:
    """Runs, by manifest id behind ``after``, of which anything was last scanned under another revision of the rules."""
    parameters = {"tenant": tx.scope.tenant_id, "revision": revision, "after": after, "limit": limit}
    return [run_of_row(row) for row in await tx.connection.execute(_WITH_OLDER_RULES, parameters)]


async def insert(tx: AnyWriteTransaction, run: Run) -> bool:
    """False when the same request has a run already, readable or not, or the manifest id is taken."""
    lease = run.lease
    result = await tx.connection.execute(
        _INSERT,
        {
            **_of(tx, run.manifest_id),
            "session": run.session_id,
            "principal": run.principal_id,
            "parent": run.parent_manifest_id,
            "idempotency_key": run.idempotency_key,
            "request_digest": run.request_digest,
            "status": str(run.status),
            "lease_owner": lease.owner if lease else None,
            "lease_fence": lease.fence if lease else 0,
            "lease_until": lease.until if lease else None,
            "window_format": run.window_format,
            "max_handoff_chars": run.max_handoff_chars,
            **handoff_columns(run.handoff),
            "counts": json.dumps(asdict(run.counts)),
            "revisions": json.dumps(run.revisions),
            "warnings": json.dumps(run.warnings),
            "timings_ms": json.dumps(run.timings_ms),
            "passages": run.passages,
            "generation": run.generation,
            "created_at": run.created_at,
            "acknowledged_at": run.acknowledged_at,
        },
    )
    return result.rowcount == 1


async def handoffs_by_sha(tx: AnyTransaction, session_id: UUID, shas: Sequence[str]) -> dict[str, UUID]:
    """Which of these hashes are handoffs of the session, and whose: those that stand, and those that were rendered again since."""
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "shas": list(shas)}
    return {row.sha256: row.manifest_id for row in await tx.connection.execute(_HANDOFFS_BY_SHA, parameters)}


async def quoting(tx: WorkerTransaction, session_id: UUID, manifest_id: UUID) -> list[Run]:
    """The session's other runs whose handoff quotes this one: a line of it, or a segment in the overview that is not theirs."""
    parameters = {**_of(tx, manifest_id), "session": session_id}
    holders = {(row.manifest_id, row.sha256) for row in await tx.connection.execute(_HOLDERS, parameters)}
    rows = await tx.connection.execute(_OTHER_RUNS, parameters)
    return [
        run
        for run in map(run_of_row, rows)
        if any(line.manifest_id == manifest_id for line in run.handoff.lines)
        or any((manifest_id, sha) in holders and (run.manifest_id, sha) not in holders for sha in run.handoff.overview_sha256s)
    ]


async def replace_handoff(tx: WorkerTransaction, manifest_id: UUID, handoff: Handoff) -> None:
    """Puts a handoff that was rendered again in the place of the run's."""
    await tx.connection.execute(_REPLACE_HANDOFF, {**_of(tx, manifest_id), **handoff_columns(handoff)})


async def set_counts(tx: WorkerTransaction, manifest_id: UUID, counts: RunCounts) -> None:
    """What the run counts of its window, when that was planned again."""
    await tx.connection.execute(_SET_COUNTS, {**_of(tx, manifest_id), "counts": json.dumps(asdict(counts))})


async def set_rule_revision(tx: WorkerTransaction, manifest_id: UUID, revision: str) -> None:
    """Records that the run's window and its handoff were scanned under these rules; its segments' revision is their own."""
    await tx.connection.execute(_SET_RULE_REVISION, {**_of(tx, manifest_id), "revision": revision})


async def mark_erased(tx: WorkerTransaction, manifest_id: UUID, at: datetime) -> Run | None:
    """The run, from this commit on unreachable; None when there was nothing left to erase."""
    return _run_or_none(await tx.connection.execute(_MARK_ERASED, {**_of(tx, manifest_id), "at": at}))


async def delete(tx: WorkerTransaction, manifest_id: UUID) -> None:
    """Deletes the run and its entries; what only they pointed at is ``segments.delete_unreferenced``'s."""
    await tx.connection.execute(_DELETE, _of(tx, manifest_id))


def _of(tx: AnyTransaction, manifest_id: UUID) -> dict[str, object]:
    return {"tenant": tx.scope.tenant_id, "manifest": manifest_id}


def _run_or_none(result: sa.CursorResult[Any]) -> Run | None:
    row = result.one_or_none()
    return None if row is None else run_of_row(row)
