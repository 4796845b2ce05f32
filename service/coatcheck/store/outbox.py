"""The outbox: what the index is owed, one lease at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.identifiers import utc_now
from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.store.ahead import furthest
from coatcheck.store.database import AnyWriteTransaction, WorkerTransaction

ERROR_MAX_CHARS = 500
AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)
"""Due now by any clock: this machine's and the server's may differ."""

_COLUMNS = """item_id, tenant_id, kind, session_id, manifest_id, segment_sha256, attempts, lease_fence, created_at,
    quarantined_at, last_error"""

_ENQUEUE = sa.text("""
    INSERT INTO outbox (tenant_id, item_id, kind, session_id, manifest_id, segment_sha256, created_at, next_attempt_at)
    VALUES (:tenant, :item, :kind, :session, :manifest, :sha256, :created_at, :due)
""")

# What waits for its first attempt is yet to be claimed: whoever claims it sees all that was written before now.
_ENQUEUE_UNLESS_WAITING = sa.text("""
    INSERT INTO outbox (tenant_id, item_id, kind, session_id, created_at, next_attempt_at)
    SELECT :tenant, :item, :kind, :session, :created_at, :due
     WHERE NOT EXISTS (
           SELECT FROM outbox
            WHERE tenant_id = :tenant AND session_id = :session AND kind = :kind AND lease_owner IS NULL
              AND quarantined_at IS NULL AND next_attempt_at <= :due)
""")

_ENQUEUE_EVERY_RUN = sa.text("""
    INSERT INTO outbox (tenant_id, item_id, kind, session_id, manifest_id, next_attempt_at)
    SELECT r.tenant_id, gen_random_uuid(), 'upsert', r.session_id, r.manifest_id, :due
      FROM runs r JOIN sessions s ON s.tenant_id = r.tenant_id AND s.session_id = r.session_id
     WHERE r.tenant_id = :tenant AND r.status = 'acknowledged' AND r.erased_at IS NULL AND s.erased_at IS NULL
       AND NOT EXISTS (SELECT FROM outbox o
                        WHERE o.tenant_id = r.tenant_id AND o.manifest_id = r.manifest_id AND o.kind = 'upsert')
""")

# An unfinished run's rows belong to whoever holds its lease. An attempt is counted when it begins: it may end with a crash.
# A sweep waits for leases of others to end, and waits rather too long than too short. ARRAY: joined, the subquery may be run again
# for each row, and then leases more than its limit, since it skips each time what it locked before.
_CLAIM = sa.text(f"""
    UPDATE outbox SET lease_owner = :owner, lease_fence = lease_fence + 1, lease_until = :until, attempts = attempts + 1
     WHERE tenant_id = :tenant
       AND item_id = ANY (ARRAY(
           SELECT o.item_id FROM outbox o
            WHERE o.tenant_id = :tenant AND o.quarantined_at IS NULL
              AND (o.next_attempt_at <= :now OR (o.next_attempt_at > :furthest AND o.kind <> 'sweep'))
              AND (o.lease_until IS NULL OR o.lease_until <= :now OR o.lease_until > :furthest)
              AND NOT (o.kind = 'upsert' AND EXISTS (
                  SELECT FROM runs r
                   WHERE r.tenant_id = o.tenant_id AND r.manifest_id = o.manifest_id
                     AND r.lease_until > :now AND r.lease_until <= :furthest))
            ORDER BY o.created_at, o.item_id LIMIT :limit
              FOR UPDATE OF o SKIP LOCKED))
    RETURNING {_COLUMNS}
""")

_COMPLETE = sa.text("DELETE FROM outbox WHERE tenant_id = :tenant AND item_id = :item AND lease_fence = :fence")

# What got on since it was claimed is not put aside.
_FAIL = sa.text("""
    UPDATE outbox SET lease_owner = NULL, lease_until = NULL, last_error = :error, next_attempt_at = :next_attempt_at,
                      quarantined_at = CASE WHEN :quarantine AND attempts >= :attempts THEN now() END
     WHERE tenant_id = :tenant AND item_id = :item AND lease_fence = :fence
    RETURNING quarantined_at IS NOT NULL
""")

_GIVE_BACK = sa.text("""
    UPDATE outbox SET lease_owner = NULL, lease_until = NULL, attempts = attempts - 1, next_attempt_at = :due
     WHERE tenant_id = :tenant AND item_id = :item AND lease_fence = :fence
""")

_NOTE_PROGRESS = sa.text("""
    UPDATE outbox o SET attempts = 1
     WHERE o.tenant_id = :tenant AND o.session_id = :session AND o.kind = 'upsert' AND o.attempts > 1
       AND EXISTS (SELECT FROM entries e
                    WHERE e.tenant_id = :tenant AND e.manifest_id = o.manifest_id AND e.segment_sha256 = ANY (:shas))
""")

_FORGET_SAME = sa.text("""
    DELETE FROM outbox
     WHERE tenant_id = :tenant AND session_id = :session AND kind = :kind AND item_id <> :item AND lease_owner IS NULL
       AND quarantined_at IS NULL
""")

_DELETE_FOR_MANIFEST = sa.text("""
    DELETE FROM outbox WHERE tenant_id = :tenant AND manifest_id = :manifest AND kind NOT IN ('erase', 'sweep')
""")

_COMPLETE_ERASURE = sa.text("""
    DELETE FROM outbox
     WHERE tenant_id = :tenant AND kind = 'erase' AND session_id = :session
       AND manifest_id IS NOT DISTINCT FROM CAST(:manifest AS uuid)
""")

_OWED_SEGMENTS = sa.text("""
    SELECT DISTINCT segment_sha256 FROM outbox
     WHERE tenant_id = :tenant AND session_id = :session AND kind = 'upsert' AND segment_sha256 = ANY (:shas)
       AND item_id IS DISTINCT FROM CAST(:but AS uuid)
""")

_IS_HELD = sa.text("""
    SELECT EXISTS (SELECT FROM outbox WHERE tenant_id = :tenant AND quarantined_at IS NULL AND lease_until > :now)
""")

_REQUEUE = sa.text("""
    UPDATE outbox SET quarantined_at = NULL, attempts = 0, next_attempt_at = :due
     WHERE tenant_id = :tenant AND quarantined_at IS NOT NULL
""")

_STATS = sa.text("""
    SELECT count(*) FILTER (WHERE quarantined_at IS NULL) AS pending,
           min(created_at) FILTER (WHERE quarantined_at IS NULL) AS oldest_at,
           count(*) FILTER (WHERE quarantined_at IS NOT NULL) AS quarantined
      FROM outbox WHERE tenant_id = :tenant
""")


class Failed(StrEnum):
    """What became of work that failed."""

    GIVEN_BACK = "given-back"
    PUT_ASIDE = "put-aside"


@dataclass(frozen=True, slots=True)
class OutboxStats:
    """How far the index is behind, for one tenant."""

    pending: int
    oldest_at: datetime | None
    quarantined: int


async def enqueue(
    tx: AnyWriteTransaction,
    item_id: UUID,
    kind: OutboxKind,
    session_id: UUID,
    *,
    manifest_id: UUID | None = None,
    segment_sha256: str | None = None,
    not_before: datetime | None = None,
) -> OutboxItem:
    """Adds a piece of work, under nobody's lease yet; due at once, or not before a time."""
    item = OutboxItem(item_id, tx.scope.tenant_id, kind, session_id, manifest_id, segment_sha256, 0, 0, utc_now())
    await tx.connection.execute(
        _ENQUEUE,
        {
            "tenant": item.tenant_id,
            "item": item.item_id,
            "kind": str(kind),
            "session": session_id,
            "manifest": manifest_id,
            "sha256": segment_sha256,
            "created_at": item.created_at,
            "due": not_before or AT_ONCE,
        },
    )
    return item


async def enqueue_unless_waiting(tx: WorkerTransaction, item_id: UUID, kind: OutboxKind, session_id: UUID) -> bool:
    """Adds work on a whole session, due at once, unless the same waits already for somebody who will see what this one saw.

    Not for who changes what that work reads: it may be claimed, and read, before this transaction commits.
    """
    parameters = {
        "tenant": tx.scope.tenant_id, "item": item_id, "kind": str(kind), "session": session_id, "created_at": utc_now(),
        "due": AT_ONCE,
    }  # fmt: skip
    return (await tx.connection.execute(_ENQUEUE_UNLESS_WAITING, parameters)).rowcount == 1


async def enqueue_every_run(tx: WorkerTransaction) -> int:
    """Adds the projection of every acknowledged run that is not outstanding already: for a new generation. Returns how many."""
    result = await tx.connection.execute(_ENQUEUE_EVERY_RUN, {"tenant": tx.scope.tenant_id, "due": AT_ONCE})
    return result.rowcount


async def claim(tx: WorkerTransaction, owner: str, limit: int, now: datetime, lease_until: datetime) -> list[OutboxItem]:
    """Leases due work that nobody holds, oldest first; two claims at the same time never get the same item."""
    parameters = {
        "tenant": tx.scope.tenant_id,
        "owner": owner,
        "limit": limit,
        "now": now,
        "until": lease_until,
        "furthest": furthest(now, lease_until),
    }
    items = [_item(row) for row in await tx.connection.execute(_CLAIM, parameters)]
    return sorted(items, key=lambda item: (item.created_at, item.item_id))


async def complete(tx: WorkerTransaction, item: OutboxItem) -> bool:
    """Takes finished work out; False when it was taken over meanwhile."""
    return (await tx.connection.execute(_COMPLETE, _held(tx, item))).rowcount == 1


async def complete_erasure(tx: WorkerTransaction, item: OutboxItem) -> None:
    """Takes an erasure out, whoever else is at it: once its rows are gone there is nothing left to do."""
    await tx.connection.execute(
        _COMPLETE_ERASURE, {"tenant": tx.scope.tenant_id, "session": item.session_id, "manifest": item.manifest_id}
    )


async def fail(tx: WorkerTransaction, item: OutboxItem, error: str, next_attempt_at: datetime, quarantine: bool) -> Failed | None:
    """Gives failed work back, or puts it aside with its error, unless it got on at this attempt; None when it was taken over."""
    text = scalar_text(error).replace("\0", "�")[:ERROR_MAX_CHARS]
    parameters = {
        **_held(tx, item), "error": text, "next_attempt_at": next_attempt_at, "quarantine": quarantine, "attempts": item.attempts,
    }  # fmt: skip
    is_aside: bool | None = await tx.connection.scalar(_FAIL, parameters)
    return None if is_aside is None else Failed.PUT_ASIDE if is_aside else Failed.GIVEN_BACK


async def give_back(tx: WorkerTransaction, items: Sequence[OutboxItem], due: datetime) -> None:
    """Gives back work that was not tried: its attempt does not count."""
    for item in items:
        await tx.connection.execute(_GIVE_BACK, {**_held(tx, item), "due": due})


async def note_progress(tx: WorkerTransaction, session_id: UUID, sha256s: Sequence[str]) -> None:
    """These segments were projected: the runs that hold them are nearer their end, and their attempts count from this one on."""
    await tx.connection.execute(_NOTE_PROGRESS, {"tenant": tx.scope.tenant_id, "session": session_id, "shas": list(sha256s)})


async def forget_same(tx: WorkerTransaction, item: OutboxItem) -> None:
    """Takes out what says the same of the same session and is nobody's yet. Whoever holds ``item`` looks at it after this."""
    parameters = {"tenant": tx.scope.tenant_id, "session": item.session_id, "kind": str(item.kind), "item": item.item_id}
    await tx.connection.execute(_FORGET_SAME, parameters)


async def delete_for_manifest(tx: WorkerTransaction, manifest_id: UUID) -> int:
    """Takes out what a manifest still owed the index, its erasure apart. Returns how many."""
    parameters = {"tenant": tx.scope.tenant_id, "manifest": manifest_id}
    return (await tx.connection.execute(_DELETE_FOR_MANIFEST, parameters)).rowcount


async def owed_segments(tx: WorkerTransaction, session_id: UUID, sha256s: Sequence[str], but: OutboxItem | None = None) -> set[str]:
    """Those of the segments whose own projection is owed, by another piece of work than ``but``."""
    parameters = {
        "tenant": tx.scope.tenant_id, "session": session_id, "shas": list(sha256s), "but": but.item_id if but else None,
    }  # fmt: skip
    return set(await tx.connection.scalars(_OWED_SEGMENTS, parameters))


async def is_held(tx: WorkerTransaction, now: datetime) -> bool:
    """Whether somebody is at any of the tenant's work."""
    return bool(await tx.connection.scalar(_IS_HELD, {"tenant": tx.scope.tenant_id, "now": now}))


async def requeue_quarantined(tx: WorkerTransaction) -> int:
    """Gives what was put aside another round of attempts. Returns how many."""
    return (await tx.connection.execute(_REQUEUE, {"tenant": tx.scope.tenant_id, "due": AT_ONCE})).rowcount


async def stats(tx: WorkerTransaction) -> OutboxStats:
    """The tenant's queue."""
    row = (await tx.connection.execute(_STATS, {"tenant": tx.scope.tenant_id})).one()
    return OutboxStats(row.pending, row.oldest_at, row.quarantined)


def _held(tx: WorkerTransaction, item: OutboxItem) -> dict[str, object]:
    return {"tenant": tx.scope.tenant_id, "item": item.item_id, "fence": item.fence}


def _item(row: sa.Row[Any]) -> OutboxItem:
    return OutboxItem(
        item_id=row.item_id,
        tenant_id=row.tenant_id,
        kind=OutboxKind(row.kind),
        session_id=row.session_id,
        manifest_id=row.manifest_id,
        segment_sha256=row.segment_sha256,
        attempts=row.attempts,
        fence=row.lease_fence,
        created_at=row.created_at,
        quarantined_at=row.quarantined_at,
        last_error=row.last_error,
    )
