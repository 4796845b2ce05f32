"""What the index has, as rows: recorded under the session's lock, and never over what somebody else wrote or took meanwhile.

Points and rows stand in two systems, and several may write the points of one segment: two compactions that share it, an erasure
that takes it out. So nobody trusts that its points are still there because it wrote them: who finds the rows changed since it
looked leaves the segment owed, and the reconciler projects it from what stands then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.domain.ports import IdFactory
from coatcheck.store import entries, outbox, projections, sessions
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.projections import ProjectionRow


@dataclass(frozen=True, slots=True)
class Projected:
    """What was written to the index and is to be recorded in the transaction that acknowledges it."""

    rows: tuple[ProjectionRow, ...] = ()
    replaces: Mapping[str, str | None] = field(default_factory=dict)
    """For each segment the content version that was recorded when it was looked at; None where none was."""
    lexical_only: int = 0
    """Segments that only the lexical leg can find."""

    @property
    def passages(self) -> int:
        return sum(row.passages for row in self.rows)


async def record(
    tx: WorkerTransaction, new_id: IdFactory, session_id: UUID, projected: Projected, item: OutboxItem | None = None
) -> None:
    """Records what was written for ``item``, or for a run. The caller holds the session's lock.

    Left out is what is owed by another item: its points were taken out after they were written, or may have been.
    """
    shas = [row.segment_sha256 for row in projected.rows]
    if not shas:
        return
    generation = projected.rows[0].generation
    owed = await outbox.owed_segments(tx, session_id, shas, item)
    recorded = await projections.of_segments(tx, session_id, shas, generation)
    versions = {sha: row.content_version for sha, row in recorded.items()}
    ours = [row for row in projected.rows if row.segment_sha256 not in owed]
    as_seen = [
        row for row in ours if versions.get(row.segment_sha256) in (projected.replaces.get(row.segment_sha256), row.content_version)
    ]
    await projections.record(tx, as_seen)
    settled = {row.segment_sha256 for row in as_seen}
    await owe(tx, new_id, session_id, [row.segment_sha256 for row in ours if row.segment_sha256 not in settled])


async def owe(tx: WorkerTransaction, new_id: IdFactory, session_id: UUID, sha256s: Iterable[str]) -> None:
    """Forgets these projections; what living runs hold of them is to be projected again. The caller holds the session's lock."""
    shas = list(dict.fromkeys(sha256s))
    if not shas:
        return
    await projections.delete(tx, session_id, shas)
    for sha in sorted(await entries.held(tx, session_id, shas)):
        await outbox.enqueue(tx, new_id(), OutboxKind.UPSERT, session_id, segment_sha256=sha)


async def owe_acl(tx: WorkerTransaction, new_id: IdFactory, session_id: UUID, written: tuple[str, ...]) -> None:
    """Points were written with this acl: where the session's is another by now, the index is to follow it."""
    session = await sessions.find_any(tx, session_id)
    if session is not None and session.acl != written:
        await outbox.enqueue(tx, new_id(), OutboxKind.ACL, session_id)
