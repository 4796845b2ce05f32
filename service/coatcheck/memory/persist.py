"""Transaction A: everything a run stores, in one commit, born leased.

Locks are taken in one order (session, segments by hash, blobs, run, entries, outbox), so that two runs of one session wait for
each other and never in a circle. The session's is shared with other runs and excludes its erasure, and that of a manifest in it:
so an erasure stands wholly before this commit, which then sees it, or wholly after, and then sees this run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from coatcheck.domain.errors import QuotaExceeded
from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.plans import Plan
from coatcheck.domain.runs import Run
from coatcheck.domain.sessions import Session
from coatcheck.identity.context import RequestContext
from coatcheck.memory.collaborators import Collaborators
from coatcheck.ops.faults import reach_async
from coatcheck.store import entries, outbox, runs, segments, sessions
from coatcheck.store.database import WriteTransaction
from coatcheck.store.made_whole import make_whole


class SessionRaced(Exception):
    """The session was created, changed or erased by another request meanwhile, or a manifest that the handoff quotes.

    The plan, which names the session and carries what earlier handoffs said, is made again.
    """


async def persist(
    parts: Collaborators, context: RequestContext, session: Session, is_new: bool, run: Run, plan: Plan
) -> Run | None:
    """The run as stored; None when the same request was stored by another process meanwhile, and nothing was written.

    Raises SessionRaced when what the plan was made for is not so any more, QuotaExceeded when it does not fit although cached
    answers make room for it.
    """
    with parts.progress.stage("persist") as piece:
        return await _persist(parts, context, session, is_new, run, plan, piece.advance)


async def _persist(
    parts: Collaborators, context: RequestContext, session: Session, is_new: bool, run: Run, plan: Plan, moved: Callable[[], None]
) -> Run | None:
    """Each statement has a limit of its own: all of them together may take longer than a stage may stand still."""
    limits = await parts.limiter.of(context.tenant_id)

    async def work(tx: WriteTransaction) -> Run | None:
        await sessions.share(tx, session.session_id)
        if not await (sessions.insert(tx, session) if is_new else _still_writable(tx, session)):
            raise SessionRaced
        quoted = {line.manifest_id for line in plan.handoff.lines} - {run.manifest_id}
        if quoted - await runs.standing(tx, quoted):
            raise SessionRaced
        moved()
        new = await segments.insert(tx, session.session_id, sorted(plan.segments, key=lambda segment: segment.sha256))
        moved()
        await segments.insert_reductions(tx, session.session_id, plan.reductions)
        await segments.insert_blobs(tx, session.session_id, sorted(plan.blobs, key=lambda blob: blob.sha256))
        moved()
        counts = dataclasses.replace(run.counts, already_stored=len(plan.segments) - new)
        stored = dataclasses.replace(run, counts=counts)
        if not await runs.insert(tx, stored):
            raise _Stored
        await reach_async("inside-persist")
        await entries.insert(tx, session.session_id, run.manifest_id, plan.entries)
        moved()
        await outbox.enqueue(tx, parts.new_id(), OutboxKind.UPSERT, session.session_id, manifest_id=run.manifest_id)
        await parts.limiter.check_fits(tx, limits)
        return stored

    if not is_new:
        # What stands already is not written again: were it damaged, this window would be taken and its text be lost.
        await parts.database.work(context.tenant_scope, lambda tx: make_whole(tx, session.session_id, plan.segments, plan.blobs))
    moved()
    try:
        try:
            return await parts.database.write(context.scope, work)
        except QuotaExceeded as full:
            await parts.limiter.make_room(context.tenant_scope, full)
            moved()
            return await parts.database.write(context.scope, work)
    except _Stored:
        return None


async def _still_writable(tx: WriteTransaction, session: Session) -> bool:
    current = await sessions.find(tx, session.session_id)
    return current is not None and bool(set(current.writers) & set(tx.scope.acl))


class _Stored(Exception):
    """Rolls the transaction back: the same request stands already."""
