"""A rescan: the stored windows planned again under today's redaction rules, so that what they find is found for good.

The whole window is rebuilt and redacted again, not each segment: a secret may lie across two segments, in a name, in a title.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from coatcheck.compaction.planner import HandoffIdentity, PlanRequest
from coatcheck.compaction.window import rebuild
from coatcheck.domain.canonical import decode, sha256_of
from coatcheck.domain.entries import Entry
from coatcheck.domain.errors import NoProgress
from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.domain.plans import Plan
from coatcheck.domain.runs import Run, RunStatus
from coatcheck.domain.scopes import TenantScope
from coatcheck.domain.sessions import Session
from coatcheck.formats import get
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.projection import Projector
from coatcheck.store import entries, outbox, projections, runs, segment_contexts, segments, sessions, tombstones
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.projections import ProjectionRow


class Rescan:
    """Walks the runs of one tenant that hold a segment scanned under older rules."""

    def __init__(self, parts: Collaborators, projector: Projector) -> None:
        self._parts = parts
        self._projector = projector

    async def rescan(self, scope: TenantScope) -> dict[str, int]:
        """Counts of runs looked at, changed and left: dropped text cannot be planned again, nor what somebody is finishing."""
        counts: Counter[str] = Counter(runs=0, changed=0, left=0)
        revision = self._parts.redactor.revision
        after: UUID | None = None
        while True:
            page = await self._parts.database.work(
                scope,
                lambda tx, after=after: runs.with_older_rules(tx, revision, after, 50),  # type: ignore[misc]
            )
            if not page:
                return dict(counts)
            for run in page:
                counts["runs"] += 1
                counts[await self._run(scope, run)] += 1
            after = page[-1].manifest_id

    async def _run(self, scope: TenantScope, run: Run) -> str:
        session, rows, texts = await self._parts.database.work(scope, lambda tx: _stored(tx, run))
        if run.status is not RunStatus.ACKNOWLEDGED or session is None or any(entry.dropped for entry in rows):
            return "left"
        system, messages = rebuild(rows, lambda entry: _text(entry, texts))
        request = PlanRequest(
            wire=get(run.window_format),
            messages=messages,
            system=system,
            times=window_times(rows),
            received_at=run.created_at,
            max_handoff_chars=run.max_handoff_chars,
            focus=None,
            identity=HandoffIdentity(
                run.manifest_id, session.session_id, session.name, run.created_at, self._parts.settings.public_url
            ),
            known_handoffs=dict(_known(rows, texts)),
            earlier_lines=[line for line in run.handoff.lines if line.manifest_id != run.manifest_id],
            keys=self._parts.keyring.placeholder_keys(scope.tenant_id, session.session_id),
            max_message_bytes=2 * self._parts.settings.max_message_bytes,
        )
        try:
            plan = await asyncio.to_thread(self._parts.planner.plan, request)
        except NoProgress:
            return "left"
        if not plan.counts.redactions_by_kind:
            await self._parts.database.work(
                scope, lambda tx: segments.set_rule_revision(tx, run.manifest_id, self._parts.redactor.revision)
            )
            return "unchanged"
        await self._replace(scope, session, run, plan)
        return "changed"

    async def _replace(self, scope: TenantScope, session: Session, run: Run, plan: Plan) -> None:
        async def work(tx: WorkerTransaction) -> tuple[list[ProjectionRow], OutboxItem | None]:
            await sessions.lock(tx, session.session_id)
            before = await entries.segments_of(tx, run.manifest_id)
            await segments.insert(tx, session.session_id, sorted(plan.segments, key=lambda segment: segment.sha256))
            await segments.insert_blobs(tx, session.session_id, plan.blobs)
            await entries.delete(tx, run.manifest_id)
            await entries.insert(tx, session.session_id, run.manifest_id, plan.entries)
            kept = {segment.sha256 for segment in plan.segments}
            gone = [sha for sha in before if sha not in kept]
            still = await segment_contexts.contexts(tx, session.session_id, gone)
            stale = await projections.all_of(tx, session.session_id, [sha for sha in gone if sha not in still])
            await segments.delete_unreferenced(tx, session.session_id)
            await segments.set_rule_revision(tx, run.manifest_id, self._parts.redactor.revision)
            if plan.handoff.sha256 != run.handoff.sha256:
                await tombstones.insert_handoff(
                    tx, run.handoff.sha256, session.session_id, run.manifest_id, session.acl, self._parts.clock()
                )
                await runs.replace_handoff(tx, run.manifest_id, plan.handoff)
            await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.UPSERT, session.session_id, manifest_id=run.manifest_id)
            # Should this process die before the points are gone: they were made from what is not to be kept.
            sweep = await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.SWEEP, session.session_id) if stale else None
            return stale, sweep

        stale, sweep = await self._parts.database.work(scope, work)
        await self._projector.remove(scope, session.session_id, stale)
        if sweep is not None:
            await self._parts.database.work(scope, lambda tx: outbox.complete(tx, sweep))


async def _stored(tx: WorkerTransaction, run: Run) -> tuple[Session | None, list[Entry], dict[str, str]]:
    rows = await entries.all(tx, run.manifest_id)
    stored = await segments.find(tx, run.session_id, list({e.segment_sha256 for e in rows if e.segment_sha256}))
    blobs = await segments.blob_texts(tx, run.session_id, list({e.blob_sha256 for e in rows if e.blob_sha256}))
    texts = {sha: decode(row.segment.raw) for sha, row in stored.items()} | {sha: decode(raw) for sha, raw in blobs.items()}
    for manifest_id in {e.handoff_manifest_id for e in rows if e.handoff_manifest_id}:
        earlier = await runs.find(tx, manifest_id)
        if earlier is not None:
            texts[str(manifest_id)] = earlier.handoff.text
    return await sessions.find_any(tx, run.session_id), rows, texts


def _text(entry: Entry, texts: dict[str, str]) -> str | None:
    return texts.get(entry.segment_sha256 or entry.blob_sha256 or str(entry.handoff_manifest_id))


def _known(rows: list[Entry], texts: dict[str, str]) -> list[tuple[str, UUID]]:
    manifests = {e.handoff_manifest_id for e in rows if e.handoff_manifest_id}
    return [(sha256_of(texts[str(manifest)]), manifest) for manifest in manifests if str(manifest) in texts]


def window_times(rows: Sequence[Entry]) -> list[datetime | None]:
    """The time of each message of the window, the system field left out."""
    times: dict[int, datetime | None] = {}
    for entry in rows:
        if not entry.is_system_field:
            times.setdefault(entry.message_index, entry.occurred_at)
    return [times[index] for index in sorted(times)]
