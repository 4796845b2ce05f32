"""Who may finish a run: leases with fences, so that of two owners the later one counts, and an acknowledgement under them."""

from __future__ import annotations

import json
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from coatcheck.domain.runs import Lease
from coatcheck.store.ahead import furthest
from coatcheck.store.database import AnyTransaction, AnyWriteTransaction, WorkerTransaction

_WRITING_UNTIL = sa.text("""
    SELECT max(until) FROM (
        SELECT greatest(lease_until, CAST(:now AS timestamptz)) AS until FROM runs
         WHERE tenant_id = :tenant AND session_id = :session AND status = 'persisted'
           AND (CAST(:manifest AS uuid) IS NULL OR manifest_id = :manifest)
        UNION ALL
        SELECT greatest(lease_until, CAST(:now AS timestamptz)) FROM outbox
         WHERE tenant_id = :tenant AND session_id = :session AND kind = 'upsert' AND lease_fence > 0
    ) writers
""")

_TAKE_OVER = sa.text("""
    UPDATE runs SET lease_owner = :owner, lease_fence = lease_fence + 1, lease_until = :until
     WHERE tenant_id = :tenant AND manifest_id = :manifest AND status = 'persisted' AND erased_at IS NULL
       AND (lease_until IS NULL OR lease_until <= :now OR lease_until > :furthest)
    RETURNING lease_fence
""")

_RENEW = sa.text("""
    UPDATE runs SET lease_until = :until
     WHERE tenant_id = :tenant AND manifest_id = :manifest AND lease_owner = :owner AND lease_fence = :fence
       AND status = 'persisted' AND erased_at IS NULL
""")

_RELEASE = sa.text("""
    UPDATE runs SET lease_owner = NULL, lease_until = NULL
     WHERE tenant_id = :tenant AND manifest_id = :manifest AND lease_owner = :owner AND lease_fence = :fence
""")

# The session's row is locked first, so that an erasure stands either wholly before this or wholly after it.
_ACKNOWLEDGE = sa.text("""
    WITH living AS (
        SELECT s.session_id FROM sessions s
          JOIN runs r ON r.tenant_id = s.tenant_id AND r.session_id = s.session_id
         WHERE s.tenant_id = :tenant AND r.manifest_id = :manifest AND s.erased_at IS NULL
           FOR SHARE OF s
    )
    UPDATE runs SET status = 'acknowledged', acknowledged_at = :at, passages = :passages, generation = :generation,
                    timings_ms = CAST(:timings_ms AS jsonb), lease_owner = NULL, lease_until = NULL
     WHERE tenant_id = :tenant AND manifest_id = :manifest AND lease_owner = :owner AND lease_fence = :fence
       AND status = 'persisted' AND erased_at IS NULL AND session_id IN (SELECT session_id FROM living)
""")

_VOID_LEASES = tuple(
    sa.text(f"UPDATE {table} SET lease_owner = NULL, lease_until = NULL WHERE tenant_id = :tenant AND lease_until > :now")
    for table in ("runs", "outbox")
)


async def take_over(tx: AnyWriteTransaction, manifest_id: UUID, owner: str, now: datetime, until: datetime) -> Lease | None:
    """The next lease on an unfinished run; None while somebody's is alive, or there is nothing left to do."""
    parameters = {
        "tenant": tx.scope.tenant_id,
        "manifest": manifest_id,
        "owner": owner,
        "now": now,
        "until": until,
        "furthest": furthest(now, until),
    }
    fence = await tx.connection.scalar(_TAKE_OVER, parameters)
    return None if fence is None else Lease(owner, fence, until)


async def renew(tx: AnyWriteTransaction, manifest_id: UUID, lease: Lease, until: datetime) -> bool:
    """Holds the lease until later; False when it was taken over or voided, or the run is finished or erased."""
    return (await tx.connection.execute(_RENEW, {**_leased(tx, manifest_id, lease), "until": until})).rowcount == 1


async def release(tx: AnyWriteTransaction, manifest_id: UUID, lease: Lease) -> bool:
    """Gives an unfinished run back; False when it was no longer ours."""
    return (await tx.connection.execute(_RELEASE, _leased(tx, manifest_id, lease))).rowcount == 1


async def acknowledge(
    tx: WorkerTransaction, manifest_id: UUID, lease: Lease, at: datetime, passages: int, generation: int, timings_ms: dict[str, int]
) -> bool:
    """Finishes a run under its fence. False when the lease was lost, or the run or its session was erased meanwhile."""
    parameters = {
        **_leased(tx, manifest_id, lease),
        "at": at,
        "passages": passages,
        "generation": generation,
        "timings_ms": json.dumps(timings_ms),
    }
    return (await tx.connection.execute(_ACKNOWLEDGE, parameters)).rowcount == 1


async def writing_until(tx: WorkerTransaction, session_id: UUID, now: datetime, manifest_id: UUID | None = None) -> datetime | None:
    """Until when somebody may write points of the session, or of one of its runs, that no row records yet; None for nobody.

    A run that was never acknowledged, and work that was claimed and never completed, count until now at least: what their owners
    wrote last may not be recorded, or may be on its way.
    """
    parameters = {"tenant": tx.scope.tenant_id, "session": session_id, "manifest": manifest_id, "now": now}
    until: datetime | None = await tx.connection.scalar(_WRITING_UNTIL, parameters)
    return until


async def void_leases(tx: WorkerTransaction, now: datetime) -> int:
    """Ends every living lease on runs and on outstanding work: for the successor of a process that died. Returns how many."""
    ended = 0
    for statement in _VOID_LEASES:
        ended += (await tx.connection.execute(statement, {"tenant": tx.scope.tenant_id, "now": now})).rowcount
    return ended


def _leased(tx: AnyTransaction, manifest_id: UUID, lease: Lease) -> dict[str, object]:
    return {"tenant": tx.scope.tenant_id, "manifest": manifest_id, "owner": lease.owner, "fence": lease.fence}
