"""Sweeps to come: points that no row tells of, or that somebody may yet write, of what is not to be kept."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from coatcheck.domain.outbox import OutboxKind
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import outbox, run_leases
from coatcheck.store.database import WorkerTransaction


async def sweep_later(
    parts: Collaborators, tx: WorkerTransaction, session_id: UUID, manifest_id: UUID | None, *, unrecorded: bool = False
) -> None:
    """Has the session swept once nobody writes any more, where anybody does or ``unrecorded`` points stand there already.

    Nobody does when the last lease is over, and a write that its owner gave up for lost has had time to arrive.
    """
    now = parts.clock()
    until = await run_leases.writing_until(tx, session_id, now, manifest_id)
    if until is not None or unrecorded:
        due = max(until or now, now + timedelta(seconds=parts.settings.lease_s)) + timedelta(seconds=1)
        await outbox.enqueue(tx, parts.new_id(), OutboxKind.SWEEP, session_id, not_before=due)
