"""Transaction A: everything a run stores, in one commit, born leased.

Locks are taken in one order (session, segments by hash, blobs, run, entries, outbox), so that two runs of one session wait for
each other and never in a circle.
"""

from __future__ import annotations

import dataclasses

from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.plans import Plan
from coatcheck.domain.runs import Run
from coatcheck.domain.sessions import Session
from coatcheck.identity.context import RequestContext
from coatcheck.memory.collaborators import Collaborators
from coatcheck.ops.faults import reach_async
from coatcheck.store import entries, outbox, runs, segments, sessions
from coatcheck.store.database import WriteTransaction


class SessionRaced(Exception):
    """The session was created, or erased, by another request meanwhile: the plan, which names the session, is made again."""


async def persist(
    parts: Collaborators, context: RequestContext, session: Session, is_new: bool, run: Run, plan: Plan
) -> Run | None:
    """The run as stored; None when the same request was stored by another process meanwhile, and nothing was written.

    Raises SessionRaced when the session's name was taken, or the session erased, meanwhile.
    """

    async def work(tx: WriteTransaction) -> Run | None:
        ready = await sessions.insert(tx, session) if is_new else await sessions.find(tx, session.session_id) is not None
        if not ready:
            raise SessionRaced
        new = await segments.insert(tx, session.session_id, sorted(plan.segments, key=lambda segment: segment.sha256))
        await segments.insert_reductions(tx, session.session_id, plan.reductions)
        await segments.insert_blobs(tx, session.session_id, sorted(plan.blobs, key=lambda blob: blob.sha256))
        counts = dataclasses.replace(run.counts, already_stored=len(plan.segments) - new)
        stored = dataclasses.replace(run, counts=counts)
        if not await runs.insert(tx, stored):
            raise _Stored
        await reach_async("inside-persist")
        await entries.insert(tx, session.session_id, run.manifest_id, plan.entries)
        await outbox.enqueue(tx, parts.new_id(), OutboxKind.UPSERT, session.session_id, manifest_id=run.manifest_id)
        return stored

    try:
        return await parts.database.write(context.scope, work)
    except _Stored:
        return None


class _Stored(Exception):
    """Rolls the transaction back: the same request stands already."""
