"""A stored window as it can be planned again: its entries, their texts, and the earlier handoffs that stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from coatcheck.compaction.handoffs import blank_handoff
from coatcheck.domain.canonical import decode
from coatcheck.domain.entries import Entry
from coatcheck.domain.runs import Run
from coatcheck.domain.sessions import Session
from coatcheck.store import entries, runs, segments, sessions
from coatcheck.store.database import WorkerTransaction


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """A run with all that its window is rebuilt from."""

    run: Run
    session: Session
    rows: list[Entry]
    texts: dict[str, str]
    """Segments and blobs by hash."""
    earlier: list[Run]
    """The runs whose handoffs stand in the window."""
    standing: set[UUID]
    """Those of the runs that they quote that were not erased."""

    @property
    def handoffs(self) -> dict[UUID, str]:
        """What stands for each earlier handoff; for an erased one, something that is no text of anybody's and as long."""
        texts = {run.manifest_id: run.handoff.text for run in self.earlier}
        for entry in self.rows:
            if entry.handoff_manifest_id is not None and entry.handoff_manifest_id not in texts:
                texts[entry.handoff_manifest_id] = blank_handoff(entry.handoff_manifest_id, entry.chars)
        return texts

    @property
    def is_incomplete(self) -> bool:
        """Whether the window cannot be had whole: some of it was dropped, or is lost."""
        return any(
            entry.dropped or any(sha is not None and sha not in self.texts for sha in (entry.segment_sha256, entry.blob_sha256))
            for entry in self.rows
        )

    def text(self, entry: Entry) -> str | None:
        if entry.handoff_manifest_id is not None:
            return self.handoffs[entry.handoff_manifest_id]
        return self.texts.get(entry.segment_sha256 or entry.blob_sha256 or "")


async def load(tx: WorkerTransaction, manifest_id: UUID) -> StoredWindow | None:
    """None when run or session was erased."""
    run = await runs.find(tx, manifest_id)
    session = await sessions.find_any(tx, run.session_id) if run is not None else None
    if run is None or run.erased or session is None or session.erased_at is not None:
        return None
    rows = await entries.all(tx, manifest_id)
    stored = await segments.find(tx, run.session_id, list({e.segment_sha256 for e in rows if e.segment_sha256}))
    blobs = await segments.blob_texts(tx, run.session_id, list({e.blob_sha256 for e in rows if e.blob_sha256}))
    texts = {sha: decode(row.segment.raw) for sha, row in stored.items() if row.is_whole}
    texts |= {sha: decode(raw) for sha, raw in blobs.items()}
    manifests = {e.handoff_manifest_id for e in rows if e.handoff_manifest_id}
    earlier = [found for manifest in manifests if (found := await runs.find(tx, manifest)) is not None and not found.erased]
    standing = await runs.standing(tx, [line.manifest_id for other in earlier for line in other.handoff.lines])
    return StoredWindow(run, session, rows, texts, earlier, standing)


def window_times(rows: Sequence[Entry]) -> list[datetime | None]:
    """The time of each message of the window, the system field left out."""
    times: dict[int, datetime | None] = {}
    for entry in rows:
        if not entry.is_system_field:
            times.setdefault(entry.message_index, entry.occurred_at)
    return [times[index] for index in sorted(times)]
