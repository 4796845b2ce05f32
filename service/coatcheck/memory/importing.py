"""One imported run: planned, stored, projected and acknowledged as a compaction is, under its own ids where they are free."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from coatcheck.compaction.planner import HandoffIdentity, PlanRequest, handoff_candidates
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import JsonValue, to_sorted_bytes
from coatcheck.domain.errors import NotFound
from coatcheck.domain.messages import WindowFormat
from coatcheck.domain.plans import Plan
from coatcheck.domain.runs import Lease, Run, RunCounts, RunStatus
from coatcheck.domain.sessions import Session, Visibility
from coatcheck.formats import get
from coatcheck.identity.context import RequestContext
from coatcheck.memory.access import new_session, require_visibility, require_writer, was_erased
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.earlier import earlier_handoffs
from coatcheck.memory.finish import Finisher
from coatcheck.memory.persist import SessionRaced, persist
from coatcheck.store import runs, sessions, tombstones
from coatcheck.store.database import ReadTransaction, WorkerTransaction


class ImportedRun(Protocol):
    """What an export's line says of a run."""

    manifest_id: UUID
    parent_manifest_id: UUID | None
    handoff_sha256: str
    format: WindowFormat
    created_at: datetime
    max_handoff_chars: int
    times: list[datetime | None]
    system: JsonValue
    messages: list[JsonValue]
    segment_sha256s: list[str]


@dataclass(frozen=True, slots=True)
class Imported:
    """A run that was stored. ``missing_segments``: hashes of the export that today's rules no longer give."""

    counts: RunCounts
    missing_segments: int


class Importer:
    """Stores sessions and runs that come from an export."""

    def __init__(self, parts: Collaborators, finisher: Finisher) -> None:
        self._parts = parts
        self._finisher = finisher

    async def session(self, context: RequestContext, session_id: UUID, name: str, visibility: Visibility) -> Session:
        """The caller's session of that name; where there is none, a new one, under the export's id when it is free.

        A team that the caller is no member of becomes ``conversation``. Nothing is stored before the session's first run.
        Raises NotFound for a credential that is kept to other sessions.
        """
        found = await self._parts.database.read(context.scope, lambda tx: sessions.find_by_name(tx, context.principal_id, name))
        if context.sessions is not None and (found is None or not context.reaches(found.session_id)):
            raise NotFound
        if found is not None:
            require_writer(context, found)
            return found
        if visibility.team_id is not None and visibility.team_id not in context.teams:
            visibility = Visibility("conversation")
        require_visibility(context, visibility)

        async def is_free(tx: WorkerTransaction) -> bool:
            taken = await sessions.find_any(tx, session_id) is not None
            return not taken and await tombstones.find(tx, "session", str(session_id)) is None

        free = session_id if await self._parts.database.work(context.tenant_scope, is_free) else None
        return await new_session(self._parts, context, name, visibility, free)

    async def run(self, context: RequestContext, session: Session, line: ImportedRun) -> Imported | None:
        """None when the run stands already, or was erased here.

        A run is of now at the latest, whatever its line claims: one of the year 9999 would outlive every retention.
        """
        key = self._key(context, session, line.manifest_id)

        async def standing(tx: ReadTransaction) -> tuple[Run | None, bool, Session | None]:
            known = await self._known(context, tx, session, line.manifest_id)
            erased = await was_erased(context, tx, "manifest", str(line.manifest_id))
            return known, erased, await sessions.find(tx, session.session_id)

        known, erased, current = await self._parts.database.read(context.scope, standing)
        if known is not None:
            await self._know_by_its_text(context, session, known, line)
        if known is not None or erased:
            return None

        async def is_free(tx: WorkerTransaction) -> bool:
            taken = await runs.find(tx, line.manifest_id) is not None
            return not taken and await tombstones.find(tx, "manifest", str(line.manifest_id)) is None

        self._parts.disk.require_room()
        await self._parts.limiter.require_room(context.tenant_scope)
        free = await self._parts.database.work(context.tenant_scope, is_free)
        manifest_id = line.manifest_id if free else self._parts.new_id()
        made_at = min(line.created_at, self._parts.clock())
        parent = await self._parent(context, session, line)
        plan = await self._plan(
            context,
            session,
            line,
            HandoffIdentity(manifest_id, session.session_id, session.name, made_at, self._parts.settings.public_url, parent),
        )
        lease = Lease(self._parts.owner, 1, self._parts.clock() + timedelta(seconds=self._parts.settings.lease_s))
        run = Run(
            manifest_id=manifest_id,
            session_id=session.session_id,
            principal_id=context.principal_id,
            parent_manifest_id=parent,
            idempotency_key=key,
            request_digest=key,
            status=RunStatus.PERSISTED,
            lease=lease,
            window_format=plan.window_format,
            max_handoff_chars=line.max_handoff_chars,
            handoff=plan.handoff,
            counts=plan.counts,
            revisions=plan.revisions | self._parts.generation.revisions,
            warnings=tuple({"code": w.code, "detail": w.detail} for w in plan.warnings),
            timings_ms={},
            created_at=made_at,
        )
        try:
            async with self._parts.working.of(context.tenant_id):
                stored = await persist(self._parts, context, session, current is None, run, plan)
        except SessionRaced:
            again = await self.session(context, session.session_id, session.name, session.visibility)
            return await self.run(context, again, line)
        if stored is None:
            return None
        finished = await self._finisher.finish(context.tenant_scope, stored, lease)
        await self._know_by_its_text(context, session, finished, line)
        missing = set(line.segment_sha256s) - {segment.sha256 for segment in plan.segments}
        return Imported(finished.counts, len(missing))

    def _key(self, context: RequestContext, session: Session, manifest_id: UUID, version: int | None = None) -> str:
        material = to_sorted_bytes([str(context.principal_id), session.name, f"import:{manifest_id}"])
        return self._parts.keyring.request_digest(context.tenant_id, material, version)

    async def _known(self, context: RequestContext, tx: ReadTransaction, session: Session, manifest_id: UUID) -> Run | None:
        """The session's run of that id; else the one that an import stored for it under another."""
        run = await runs.find(tx, manifest_id)
        if run is not None and run.session_id == session.session_id:
            return run
        for version in self._parts.keyring.versions:
            key = self._key(context, session, manifest_id, version)
            known = await runs.find_by_request(tx, session.session_id, context.principal_id, key)
            if known is not None:
                return known
        return None

    async def _parent(self, context: RequestContext, session: Session, line: ImportedRun) -> UUID | None:
        """As which run the session knows the parent; None where it was not imported."""
        parent_id = line.parent_manifest_id
        if parent_id is None:
            return None
        found = await self._parts.database.read(context.scope, lambda tx: self._known(context, tx, session, parent_id))
        return found.manifest_id if found is not None else None

    async def _know_by_its_text(self, context: RequestContext, session: Session, run: Run, line: ImportedRun) -> None:
        """Other ids, rules or links give another handoff: who still carries the old text is known by it, and it is not stored."""
        if run.handoff.sha256 == line.handoff_sha256:
            return
        await self._parts.database.work(
            context.tenant_scope,
            lambda tx: tombstones.insert_handoff(
                tx, line.handoff_sha256, session.session_id, run.manifest_id, session.acl, self._parts.clock()
            ),
        )

    async def _plan(self, context: RequestContext, session: Session, line: ImportedRun, identity: HandoffIdentity) -> Plan:
        wire = get(line.format)
        candidates = await asyncio.to_thread(handoff_candidates, wire, line.messages, line.system)
        earlier = await earlier_handoffs(self._parts, context.scope, session.session_id, candidates)
        request = PlanRequest(
            wire=wire,
            messages=line.messages,
            system=line.system,
            times=line.times,
            received_at=identity.created_at,
            max_handoff_chars=line.max_handoff_chars,
            focus=None,
            identity=identity,
            known_handoffs=earlier.known,
            earlier_lines=earlier.lines,
            keys=self._parts.keyring.placeholder_keys(context.tenant_id, session.session_id),
            max_message_bytes=self._parts.settings.max_message_bytes,
            budget=Budget.of(context.tenant_id, self._parts.settings.stage_limit_s),
            may_drop=False,
        )
        async with self._parts.working.of(context.tenant_id) as slot:
            return await self._parts.planning(slot, request)
