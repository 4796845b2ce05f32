"""What the index has, as rows: recorded under the session's lock, and never over what somebody else wrote or took meanwhile.

Points and rows stand in two systems, and several may write the points of one segment: two compactions that share it, an erasure
that takes it out. So nobody trusts that its points are still there because it wrote them: who finds the rows changed since it
looked leaves the segment owed, and the reconciler projects it from what stands then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.domain.ports import IdFactory
from coatcheck.domain.sessions import Session
from coatcheck.store import entries, outbox, projections, runs, sessions
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.projections import ProjectionRow


@dataclass(frozen=True, slots=True)
class Written:
    """The points of one segment, as they were written to the index."""

    row: ProjectionRow
    replaces: str | None
    """The content version that was recorded when the segment was looked at; None where none was."""


async def record(
    tx: WorkerTransaction, new_id: IdFactory, session: Session, written: Sequence[Written], item: OutboxItem | None = None
) -> set[str] | None:
    """Records what was written for ``item``, or for a run, to the readers of ``session`` as it was then.

    Returns which of the segments living runs hold, the points of the others being nobody's; None where the session went. Left out
    is what is owed by another item: its points were taken out after they were written, or may have been.
    """
    session_id = session.session_id
    await sessions.lock(tx, session_id)
    now = await sessions.find_any(tx, session_id)
    if now is None or now.erased_at is not None:
        return None
    held = await entries.held(tx, session_id, [one.row.segment_sha256 for one in written])
    standing = {one.row.segment_sha256: one for one in written if one.row.segment_sha256 in held}
    if not standing:
        return held
    owed = await outbox.owed_segments(tx, session_id, list(standing), item)
    ours = [one for sha, one in standing.items() if sha not in owed]
    as_seen = await _as_seen(tx, session_id, ours)
    await projections.record(tx, [one.row for one in as_seen])
    await outbox.note_progress(tx, session_id, [one.row.segment_sha256 for one in as_seen])
    await owe(tx, new_id, session_id, [one.row.segment_sha256 for one in ours if one not in as_seen])
    if now.acl != session.acl:  # the index is to follow, once for all slices that were written meanwhile
        await outbox.enqueue_unless_waiting(tx, new_id(), OutboxKind.ACL, session_id)
    return held


async def _as_seen(tx: WorkerTransaction, session_id: UUID, written: Sequence[Written]) -> list[Written]:
    """Those of which the rows still say what they said when they were looked at, and whose context was not erased meanwhile."""
    if not written:
        return []
    shas = [one.row.segment_sha256 for one in written]
    recorded = await projections.of_segments(tx, session_id, shas, written[0].row.generation)
    standing = await runs.standing(tx, [one.row.context_manifest_id for one in written])

    def is_as_seen(one: Written) -> bool:
        now = recorded.get(one.row.segment_sha256)
        version = now.content_version if now is not None else None
        return version in (one.replaces, one.row.content_version) and one.row.context_manifest_id in standing

    return [one for one in written if is_as_seen(one)]


async def owe(tx: WorkerTransaction, new_id: IdFactory, session_id: UUID, sha256s: Iterable[str]) -> None:
    """Forgets these projections; what living runs hold of them is to be projected again. The caller holds the session's lock."""
    shas = list(dict.fromkeys(sha256s))
    if not shas:
        return
    await projections.delete(tx, session_id, shas)
    for sha in sorted(await entries.held(tx, session_id, shas)):
        await outbox.enqueue(tx, new_id(), OutboxKind.UPSERT, session_id, segment_sha256=sha)
