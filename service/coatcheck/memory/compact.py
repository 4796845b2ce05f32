"""Hand in a window, get a handoff: the durable protocol around the pure pipeline.

    resolve the session -> the same request again? -> plan -> transaction A -> project -> transaction B -> answer

The work runs as a task of its own: a caller that goes away, or whose deadline passes, does not stop it. Whatever fails, the
window is still with the agent, and the same request finds what already stands and finishes it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from coatcheck.compaction.planner import HandoffIdentity, PlanRequest, handoff_candidates
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.errors import (
    Draining,
    Erased,
    FenceLost,
    IdempotencyConflict,
    IndexUnavailable,
    InProgress,
    InvalidRequest,
    NotFound,
    Overloaded,
    ProjectionPending,
    StageUnavailable,
    VisibilityConflict,
)
from coatcheck.domain.messages import WireFormat
from coatcheck.domain.plans import Plan
from coatcheck.domain.runs import Lease, Run, RunStatus
from coatcheck.domain.sessions import Session, Visibility
from coatcheck.formats import detect, get
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.access import find_session, new_session, require_visibility, require_writer, run_by_id, was_erased
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.earlier import earlier_handoffs
from coatcheck.memory.finish import Finisher
from coatcheck.memory.flights import Flights
from coatcheck.memory.persist import SessionRaced, persist
from coatcheck.memory.presenting import Presenter
from coatcheck.memory.request_keys import RequestKey, request_keys
from coatcheck.memory.responses import compaction_response
from coatcheck.ops.faults import reach_async
from coatcheck.ops.slots import Slot
from coatcheck.store import run_leases, runs
from coatcheck.store.database import ReadTransaction
from coatcheck_client.wire import CompactionRequest, CompactionResponse

SAME_REQUEST_POLL_S = 0.1
_MODELS_SHARE = 0.6
"""Of a request's deadline, when the models that shorten text have answered or are done without: storing takes the rest."""


@dataclass(frozen=True, slots=True)
class CompactionCommand:
    """One request, checked against the wire model; ``idempotency_key`` as the caller gave it, ``deadline_s`` from now."""

    request: CompactionRequest
    idempotency_key: str | None
    deadline_s: float


@dataclass(frozen=True, slots=True)
class Compacted:
    """The answer, and whether this request made it (201) or found it (200)."""

    response: CompactionResponse
    created: bool


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request with everything that is decided before planning."""

    context: RequestContext
    command: CompactionCommand
    wire: WireFormat
    keys: Sequence[RequestKey]
    """Today's first."""
    began: float
    """When the request came, on the monotonic clock."""

    @property
    def request(self) -> CompactionRequest:
        return self.command.request


class Compact:
    """The use case behind ``POST /v1/compactions``."""

    def __init__(self, parts: Collaborators, finisher: Finisher, presenter: Presenter) -> None:
        self._parts = parts
        self._finisher = finisher
        self._presenter = presenter
        self._flights = Flights[Compacted]()
        self._persisted: set[str] = set()

    async def __call__(self, context: RequestContext, command: CompactionCommand) -> Compacted:
        """Raises what contract.md lists for compactions; nothing is stored by a request that is refused."""
        context.require(Operation.COMPACT)
        await self._parts.limiter.require_embedding(context.tenant_scope)
        asked = self._ask(context, command)
        flight = _flight(asked)
        joined = self._flights.joined(flight)
        task = self._flights.start(flight, lambda: self._work(asked, flight))
        done, _ = await asyncio.wait({task}, timeout=command.deadline_s)
        if not done:
            if flight in self._persisted:
                raise ProjectionPending
            raise Overloaded("The deadline passed before the window was stored; the same request goes on where this one is.")
        if task.cancelled():
            raise Draining
        result = task.result()
        return Compacted(result.response, created=result.created and not joined)

    async def drain(self, work_s: float, answers_s: float = 5.0) -> None:
        """Lets the work under way finish; what does not is cancelled, and left to the next owner of its lease."""
        await self._flights.drain(work_s, answers_s)

    def _ask(self, context: RequestContext, command: CompactionCommand) -> _Asked:
        request = command.request
        window = request.window
        wire = detect(window.messages, window.system) if window.format == "auto" else get(window.format)
        keys = request_keys(self._parts.keyring, context, request, command.idempotency_key)
        return _Asked(context, command, wire, keys, time.monotonic())

    async def _work(self, asked: _Asked, flight: str) -> Compacted:
        try:
            for _ in range(3):
                try:
                    return await self._once(asked, flight)
                except SessionRaced:
                    continue
            raise Overloaded("The session was being changed by several requests at once.")
        finally:
            self._persisted.discard(flight)

    async def _once(self, asked: _Asked, flight: str) -> Compacted:
        tenant_id = asked.context.tenant_id
        async with self._parts.working.of(tenant_id):
            session, stored = await self._parts.database.read(asked.context.scope, lambda tx: self._standing(asked, tx))
        if stored is not None:
            return await self._again(asked, stored, flight)
        self._parts.disk.require_room()
        async with self._parts.working.of(tenant_id) as slot:
            await self._parts.limiter.require_room(asked.context.tenant_scope)
            visibility = Visibility.parse(asked.request.visibility or "conversation")
            planned_session = session or await new_session(self._parts, asked.context, asked.request.session, visibility)
            run, plan = await self._plan(asked, planned_session, slot, is_new=session is None)
        await reach_async("before-persist")
        started = time.monotonic()
        lease = run.lease
        assert lease is not None
        async with self._parts.working.of(tenant_id):
            persisted = await persist(self._parts, asked.context, planned_session, session is None, run, plan)
        if persisted is None:
            return await self._once(asked, flight)
        self._persisted.add(flight)
        await reach_async("after-persist")
        timed = {**persisted.timings_ms, "persist": round((time.monotonic() - started) * 1_000)}
        return await self._finish(asked, dataclasses.replace(persisted, timings_ms=timed), lease, created=True)

    async def _standing(self, asked: _Asked, tx: ReadTransaction) -> tuple[Session | None, Run | None]:
        """The session and the run that already stand. Raises Erased, NotFound, Forbidden, conflicts."""
        context, request = asked.context, asked.request
        for one in asked.keys:
            if await was_erased(context, tx, "request", one.key):
                raise Erased("The window of this request was erased. To store it anew, send another Idempotency-Key.")
        session = await find_session(context, tx, request.session)
        if session is None:
            if context.sessions is not None:
                raise NotFound
            require_visibility(context, Visibility.parse(request.visibility or "conversation"))
            return None, None
        require_writer(context, session)
        if request.visibility is not None and str(Visibility.parse(request.visibility)) != str(session.visibility):
            raise VisibilityConflict
        for one in asked.keys:
            stored = await runs.find_by_request(tx, session.session_id, context.principal_id, one.key)
            if stored is not None and stored.request_digest != one.digest:
                raise IdempotencyConflict
            if stored is not None:
                return session, stored
        return session, None

    async def _again(self, asked: _Asked, run: Run, flight: str) -> Compacted:
        """The same request again: answer, wait for whoever works on it, or take it over."""
        self._persisted.add(flight)
        give_up = time.monotonic() + self._parts.settings.same_request_wait_s
        while True:
            if run.status is RunStatus.ACKNOWLEDGED:
                return Compacted(compaction_response(await self._presenter.run(asked.context, run)), created=False)
            now = self._parts.clock()
            until = now + timedelta(seconds=self._parts.settings.lease_s)
            taken = await self._parts.database.work(
                asked.context.tenant_scope,
                lambda tx, manifest_id=run.manifest_id, now=now, until=until: run_leases.take_over(  # type: ignore[misc]
                    tx, manifest_id, self._parts.owner, now, until
                ),
            )
            if taken is not None:
                return await self._finish(asked, run, taken, created=False)
            if time.monotonic() >= give_up:
                raise InProgress
            await asyncio.sleep(SAME_REQUEST_POLL_S)
            run, _ = await self._parts.database.read(
                asked.context.scope,
                lambda tx, manifest_id=run.manifest_id: run_by_id(asked.context, tx, manifest_id),  # type: ignore[misc]
            )

    async def _finish(self, asked: _Asked, run: Run, lease: Lease, *, created: bool) -> Compacted:
        try:
            finished = await self._finisher.finish(asked.context.tenant_scope, run, lease)
        except FenceLost as error:
            raise ProjectionPending from error
        except (IndexUnavailable, StageUnavailable, Overloaded) as error:
            self._parts.metrics.projection_failures.inc()
            raise ProjectionPending from error
        return Compacted(compaction_response(finished), created=created)

    async def _plan(self, asked: _Asked, session: Session, slot: Slot, *, is_new: bool) -> tuple[Run, Plan]:
        context, request = asked.context, asked.request
        messages: list[JsonValue] = request.window.messages
        candidates = [] if is_new else await asyncio.to_thread(handoff_candidates, asked.wire, messages, request.window.system)
        earlier = await earlier_handoffs(self._parts, context.scope, session.session_id, candidates)
        now = self._parts.clock()
        manifest_id = self._parts.new_id()
        plan_request = PlanRequest(
            wire=asked.wire,
            messages=messages,
            system=request.window.system,
            times=request.window.times,
            received_at=now,
            max_handoff_chars=request.max_handoff_chars,
            focus=request.focus,
            identity=HandoffIdentity(
                manifest_id, session.session_id, session.name, now, self._parts.settings.public_url, request.parent_manifest_id
            ),
            known_handoffs=earlier.known,
            earlier_lines=earlier.lines,
            keys=self._parts.keyring.placeholder_keys(context.tenant_id, session.session_id),
            max_message_bytes=self._parts.settings.max_message_bytes,
            budget=Budget(context.tenant_id, asked.began + asked.command.deadline_s * _MODELS_SHARE),
        )
        started = time.monotonic()
        plan = await self._parts.planning(slot, plan_request)
        parent = await self._parent(asked, session, plan, is_new=is_new)
        lease = Lease(self._parts.owner, 1, self._parts.clock() + timedelta(seconds=self._parts.settings.lease_s))
        run = Run(
            manifest_id=manifest_id,
            session_id=session.session_id,
            principal_id=context.principal_id,
            parent_manifest_id=parent,
            idempotency_key=asked.keys[0].key,
            request_digest=asked.keys[0].digest,
            status=RunStatus.PERSISTED,
            lease=lease,
            window_format=plan.window_format,
            max_handoff_chars=request.max_handoff_chars,
            handoff=plan.handoff,
            counts=plan.counts,
            revisions=plan.revisions | self._parts.generation.revisions,
            warnings=tuple({"code": w.code, "detail": w.detail} for w in plan.warnings),
            timings_ms={"plan": round((time.monotonic() - started) * 1_000)},
            created_at=now,
        )
        return run, plan

    async def _parent(self, asked: _Asked, session: Session, plan: Plan, *, is_new: bool) -> UUID | None:
        """The run this one follows: the newest handoff in the window, or where none is, a run of this session that is named."""
        named = asked.request.parent_manifest_id
        in_window = plan.earlier_handoffs
        if named is None:
            return in_window[-1] if in_window else None
        if in_window:
            fits = named in in_window
        else:
            found = None if is_new else await self._parts.database.read(asked.context.scope, lambda tx: runs.find(tx, named))
            fits = found is not None and found.session_id == session.session_id
        if not fits:
            raise InvalidRequest("parent_manifest_id names neither the handoff in the window nor a run of this session.")
        return named


def _flight(asked: _Asked) -> str:
    """Who may join: the same request of the same principal, with a key that reaches as far."""
    context, today = asked.context, asked.keys[0]
    reach = "*" if context.sessions is None else ",".join(sorted(map(str, context.sessions)))
    return f"{context.tenant_id}/{context.principal_id}/{context.permission_revision}/{reach}/{today.key}/{today.digest}"
