"""A rescan: the stored windows planned again under today's redaction rules, so that what they find is found for good.

The whole window is rebuilt and redacted again, not each segment: a secret may lie across two segments, in a name, in a title.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from coatcheck.compaction.planner import HandoffIdentity, PlanRequest
from coatcheck.compaction.window import rebuild
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.errors import CoatcheckError, RedactionFailed
from coatcheck.domain.outbox import OutboxItem, OutboxKind
from coatcheck.domain.plans import Plan
from coatcheck.domain.runs import Handoff, Run, RunCounts, RunStatus
from coatcheck.domain.scopes import TenantScope
from coatcheck.formats import get
from coatcheck.memory import rescan_pieces, stored_window
from coatcheck.memory.cache_expiry import forget_outdated_answers
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.earlier import lines_of
from coatcheck.memory.projection import Projector
from coatcheck.memory.stored_window import StoredWindow, window_times
from coatcheck.memory.sweeping import sweep_later
from coatcheck.store import entries, outbox, projections, runs, segment_contexts, segments, sessions, tombstones
from coatcheck.store.database import WorkerTransaction
from coatcheck.store.projections import ProjectionRow

ATTEMPTS = 3


class Rescan:
    """Walks the runs of one tenant of which anything was scanned under older rules."""

    def __init__(self, parts: Collaborators, projector: Projector) -> None:
        self._parts = parts
        self._projector = projector

    async def rescan(self, scope: TenantScope) -> dict[str, int]:
        """Counts of runs looked at, changed and left.

        Left is what cannot be planned again, of which only what stands in one segment alone is redacted for good, and what
        somebody is finishing.
        """
        counts: Counter[str] = Counter(runs=0, changed=0, left=0)
        revision = self._parts.redactor.revision
        await forget_outdated_answers(self._parts, scope)
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
                counts[await self._run(scope, run.manifest_id)] += 1
            after = page[-1].manifest_id

    async def _run(self, scope: TenantScope, manifest_id: UUID) -> str:
        """Plans and replaces; once more where an erasure came between, since it has taken lines out of this handoff too."""
        for _ in range(ATTEMPTS):
            stored = await self._parts.database.work(scope, lambda tx: stored_window.load(tx, manifest_id))
            if stored is None:
                return "unchanged"
            if stored.run.status is not RunStatus.ACKNOWLEDGED:
                return "left"
            try:
                plan = None if stored.is_incomplete else await self._plan(scope, stored)
                quotes = await asyncio.to_thread(self._finds, scope, stored)
            except CoatcheckError as error:
                if error.retryable:
                    raise
                plan = None
            if plan is None:
                if await self._piece_by_piece(scope, stored):
                    return "left"
            elif plan.counts.redactions_by_kind or quotes:
                if await self._replace(scope, stored, _planned(stored.run, plan)):
                    return "changed"
            else:
                await self._parts.database.work(scope, lambda tx: self._mark(tx, manifest_id))
                return "unchanged"
        return "left"

    async def _plan(self, scope: TenantScope, stored: StoredWindow) -> Plan:
        run, session = stored.run, stored.session
        system, messages = rebuild(stored.rows, stored.text)
        lines = await lines_of(self._parts, scope.tenant_id, session.session_id, stored.earlier, stored.standing)
        request = PlanRequest(
            wire=get(run.window_format),
            messages=messages,
            system=system,
            times=window_times(stored.rows),
            received_at=run.created_at,
            max_handoff_chars=run.max_handoff_chars,
            focus=None,
            identity=HandoffIdentity(
                run.manifest_id,
                session.session_id,
                session.name,
                run.created_at,
                self._parts.settings.public_url,
                run.parent_manifest_id,
            ),
            known_handoffs={sha256_of(text): manifest_id for manifest_id, text in stored.handoffs.items()},
            earlier_lines=lines,
            keys=self._parts.keyring.placeholder_keys(scope.tenant_id, session.session_id),
            max_message_bytes=2 * self._parts.settings.max_message_bytes,
            budget=Budget.of(scope.tenant_id, self._parts.settings.stage_limit_s),
            may_drop=False,
            must_gain=False,
        )
        async with self._parts.working.of(scope.tenant_id) as slot:
            return await self._parts.planning(slot, request)

    def _finds(self, scope: TenantScope, stored: StoredWindow) -> bool:
        """Whether today's rules find anything in what the handoff quotes, of this window or of an earlier one."""
        keys = self._parts.keyring.placeholder_keys(scope.tenant_id, stored.session.session_id)
        return bool(self._parts.redactor.redact_text(stored.run.handoff.text, keys).counts)

    async def _piece_by_piece(self, scope: TenantScope, stored: StoredWindow) -> bool:
        """What can go of a window that cannot be planned again. False when somebody changed the run meanwhile."""
        keys = self._parts.keyring.placeholder_keys(scope.tenant_id, stored.session.session_id)
        public_url = self._parts.settings.public_url
        try:
            pieces = await asyncio.to_thread(rescan_pieces.redacted, self._parts.redactor, keys, public_url, stored)
        except RedactionFailed:
            return True
        if pieces is None:
            return True
        manifest_id, session_id = stored.run.manifest_id, stored.session.session_id

        async def write(tx: WorkerTransaction) -> None:
            await segments.insert(tx, session_id, {segment.sha256: segment for segment in pieces.by_ordinal.values()}.values())
            await entries.replace_segments(tx, manifest_id, pieces.by_ordinal)

        counts = dataclasses.replace(
            stored.run.counts, redactions_by_kind=_sum(stored.run.counts.redactions_by_kind, pieces.redactions)
        )
        return await self._replace(scope, stored, _Anew(write, pieces.handoff, counts, is_whole=False))

    async def _replace(self, scope: TenantScope, stored: StoredWindow, anew: _Anew) -> bool:
        """False when the run's handoff, or what the new one quotes, is not what it was any more: nothing was changed."""
        run, session = stored.run, stored.session
        session_id = session.session_id

        async def work(tx: WorkerTransaction) -> tuple[list[ProjectionRow], OutboxItem | None] | None:
            await sessions.lock(tx, session_id)
            if not await _still_so(tx, run, anew.handoff):
                return None
            before = await entries.segments_of(tx, run.manifest_id)
            await anew.write(tx)
            kept = set(await entries.segments_of(tx, run.manifest_id))
            gone = [sha for sha in before if sha not in kept]
            still = await segment_contexts.contexts(tx, session_id, gone)
            stale = await projections.all_of(tx, session_id, [sha for sha in gone if sha not in still])
            unrecorded = {row.segment_sha256 for row in stale} != {sha for sha in gone if sha not in still}
            await segments.delete_unreferenced(tx, session_id)
            if anew.handoff.sha256 != run.handoff.sha256:
                await tombstones.insert_handoff(
                    tx, run.handoff.sha256, session_id, run.manifest_id, session.acl, self._parts.clock()
                )
                await runs.replace_handoff(tx, run.manifest_id, anew.handoff)
            await runs.set_counts(tx, run.manifest_id, anew.counts)
            if anew.is_whole:
                await self._mark(tx, run.manifest_id)
            # They were made from what is not to be kept: those of which no row tells, since they are owed anew, or that are on
            # their way, and the others too, should this process die before they are gone.
            await sweep_later(self._parts, tx, session_id, run.manifest_id, unrecorded=unrecorded)
            sweep = await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.SWEEP, session_id) if stale else None
            await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.UPSERT, session_id, manifest_id=run.manifest_id)
            return stale, sweep

        replaced = await self._parts.database.work(scope, work)
        if replaced is None:
            return False
        stale, sweep = replaced
        await self._projector.remove(scope, session_id, stale)
        if sweep is not None:
            await self._parts.index.flush()
            await self._parts.database.work(scope, lambda tx: outbox.complete(tx, sweep))
        return True

    async def _mark(self, tx: WorkerTransaction, manifest_id: UUID) -> None:
        revision = self._parts.redactor.revision
        await segments.set_rule_revision(tx, manifest_id, revision)
        await runs.set_rule_revision(tx, manifest_id, revision)


@dataclass(frozen=True, slots=True)
class _Anew:
    """What is to stand in a run's place. ``is_whole``: all of it was scanned under today's rules."""

    write: Callable[[WorkerTransaction], Awaitable[None]]
    """Stores the segments and has the entries name them."""
    handoff: Handoff
    counts: RunCounts
    is_whole: bool


def _planned(run: Run, plan: Plan) -> _Anew:
    """A window that was planned again, whole. What was redacted the first time stays counted."""

    async def write(tx: WorkerTransaction) -> None:
        await segments.insert(tx, run.session_id, plan.segments)
        await segments.insert_reductions(tx, run.session_id, plan.reductions)
        await segments.insert_blobs(tx, run.session_id, plan.blobs)
        await entries.delete(tx, run.manifest_id)
        await entries.insert(tx, run.session_id, run.manifest_id, plan.entries)

    counts = dataclasses.replace(
        plan.counts,
        already_stored=run.counts.already_stored,
        redactions_by_kind=_sum(run.counts.redactions_by_kind, plan.counts.redactions_by_kind),
    )
    return _Anew(write, plan.handoff, counts, is_whole=True)


async def _still_so(tx: WorkerTransaction, run: Run, handoff: Handoff) -> bool:
    current = await runs.find(tx, run.manifest_id)
    if current is None or current.erased or current.handoff.sha256 != run.handoff.sha256:
        return False
    quoted = {line.manifest_id for line in handoff.lines}
    return quoted <= await runs.standing(tx, quoted)


def _sum(first: Mapping[str, int], then: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(first) + Counter(then)).items()))
