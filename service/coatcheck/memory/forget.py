"""Forget a session or one manifest: unreachable at once, on the journal, then out of the index, then out of the tables.

    one transaction: mark, tombstones, handoffs without the erased lines, outbox row   -> nothing can be read any more
    journal (fsync) -> points -> rows -> the outbox row goes                            -> 204

A crash anywhere leaves the outbox row, and the reconciler goes on from the journal line.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from coatcheck.domain.errors import Erased, ErasePending, IndexUnavailable, StoreUnavailable
from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.domain.runs import Run
from coatcheck.domain.sessions import Session
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory import receipts
from coatcheck.memory.access import owned_session, session_of_owned_run
from coatcheck.memory.cache_expiry import forget_answers
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.erasing import Eraser
from coatcheck.memory.receipts import Cause
from coatcheck.memory.rerender import without_manifest
from coatcheck.ops.faults import reach_async
from coatcheck.store import audit, entries, erasures, outbox, runs, sessions, tombstones
from coatcheck.store.database import WorkerTransaction


class Forget:
    """The use cases behind ``DELETE /v1/sessions/{id}`` and ``DELETE /v1/manifests/{id}``."""

    def __init__(self, parts: Collaborators, eraser: Eraser) -> None:
        self._parts = parts
        self._eraser = eraser

    async def session(self, context: RequestContext, session_id: UUID) -> UUID:
        """Returns the erasure's id when nothing is left.

        Raises ErasePending when the rest follows by itself, NotFound, Erased, Forbidden.
        """
        context.require(Operation.ERASE)
        await owned_session(context, self._parts.database, session_id)

        async def mark(tx: WorkerTransaction) -> tuple[UUID, OutboxItem]:
            now = self._parts.clock()
            await sessions.lock(tx, session_id)
            marked = await sessions.mark_erased(tx, session_id, now)
            if marked is None:
                raise Erased
            erasure_id = await mark_session(self._parts, tx, marked, now, Cause(context.principal_id, "request"))
            await audit.record(tx, self._parts.new_id(), context.actor, "session.erase", "session", str(session_id))
            return erasure_id, await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.ERASE, session_id)

        with self._eraser.alone_with(session_id, None):
            erasure_id, item = await self._parts.database.work(context.tenant_scope, mark)
            await self._erase(context, item)
        return erasure_id

    async def manifest(self, context: RequestContext, manifest_id: UUID) -> UUID:
        """As ``session``, for one run: what other runs of its session hold too stays theirs."""
        context.require(Operation.ERASE)
        session_id = await session_of_owned_run(context, self._parts.database, manifest_id)

        async def mark(tx: WorkerTransaction) -> tuple[UUID, OutboxItem]:
            now = self._parts.clock()
            await sessions.lock(tx, session_id)
            session = await sessions.find_any(tx, session_id)
            marked = await runs.mark_erased(tx, manifest_id, now)
            if session is None or marked is None:
                raise Erased
            erasure_id = await mark_manifest(self._parts, tx, session, marked, now, Cause(context.principal_id, "request"))
            await audit.record(tx, self._parts.new_id(), context.actor, "manifest.erase", "manifest", str(manifest_id))
            item = await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.ERASE, session_id, manifest_id=manifest_id)
            return erasure_id, item

        with self._eraser.alone_with(session_id, manifest_id):
            erasure_id, item = await self._parts.database.work(context.tenant_scope, mark)
            await self._erase(context, item)
        return erasure_id

    async def _erase(self, context: RequestContext, item: OutboxItem) -> None:
        await reach_async("after-erase-mark")
        try:
            await self._eraser.erase(context.tenant_scope, item)
        except (IndexUnavailable, StoreUnavailable, OSError) as error:
            raise ErasePending from error


async def mark_session(parts: Collaborators, tx: WorkerTransaction, session: Session, now: datetime, cause: Cause) -> UUID:
    """Tombstones of a session, its runs and its segments: what tells 410 from 404 to those who could read them.

    What is derived goes or is marked here too, and all of it is counted. Returns the erasure's id.
    """
    counts = await erasures.count_session(tx, session.session_id)
    ids = await runs.identities(tx, session.session_id)
    tags = _tags(parts, tx, await entries.segments_of_session(tx, session.session_id))
    counts["cache_entries"] = await forget_answers(parts, tx, session.session_id, [identity.manifest_id for identity in ids])
    for kind, keys in (
        ("session", [str(session.session_id)]),
        ("manifest", [str(identity.manifest_id) for identity in ids]),
        ("request", [identity.idempotency_key for identity in ids]),
        ("segment", tags),
    ):
        await tombstones.insert(tx, kind, keys, session.session_id, None, session.acl, now)
    return await receipts.begin(
        parts, tx, "session", session.session_id, cause, now, counts, session_id=session.session_id, owner_id=session.owner_id
    )


async def mark_manifest(
    parts: Collaborators, tx: WorkerTransaction, session: Session, run: Run, now: datetime, cause: Cause
) -> UUID:
    """Tombstones of one run and of the segments that only it holds; descendants' handoffs are rendered without its lines.

    Returns the erasure's id.
    """
    shas = await entries.segments_only_of(tx, run.session_id, run.manifest_id)
    counts = await erasures.count_manifest(tx, run.session_id, run.manifest_id, shas)
    counts["cache_entries"] = await forget_answers(parts, tx, run.session_id, [run.manifest_id])
    counts |= {"handoffs_rendered_again": 0, "handoff_lines": 0}
    for kind, keys in (
        ("manifest", [str(run.manifest_id)]),
        ("request", [run.idempotency_key]),
        ("segment", _tags(parts, tx, shas)),
    ):
        await tombstones.insert(tx, kind, keys, session.session_id, run.manifest_id, session.acl, now)
    await tombstones.insert_handoff(tx, run.handoff.sha256, session.session_id, run.manifest_id, session.acl, now)
    for other in await runs.quoting(tx, run.session_id, run.manifest_id):
        rendered = without_manifest(other, session.name, parts.settings.public_url, run.manifest_id, shas)
        await tombstones.insert_handoff(tx, other.handoff.sha256, session.session_id, other.manifest_id, session.acl, now)
        await runs.replace_handoff(tx, other.manifest_id, rendered)
        counts["handoffs_rendered_again"] += 1
        counts["handoff_lines"] += len(other.handoff.lines) - len(rendered.lines)
    await reach_async("inside-erase-mark")
    return await receipts.begin(
        parts, tx, "manifest", run.manifest_id, cause, now, counts, session_id=session.session_id, owner_id=session.owner_id
    )


def _tags(parts: Collaborators, tx: WorkerTransaction, sha256s: Sequence[str]) -> list[str]:
    return [parts.keyring.segment_tag(tx.scope.tenant_id, sha) for sha in sha256s]
