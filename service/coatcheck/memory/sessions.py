"""Sessions: list them, look at one, change who may read it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from coatcheck.domain.errors import Forbidden, InvalidRequest, NotFound
from coatcheck.domain.outbox import OutboxKind
from coatcheck.domain.sessions import Session, Visibility
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.access import own_session, owned_session, require_visibility, session_by_id
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.standing import require_standing
from coatcheck.store import audit, outbox, principals, sessions, teams, tombstones
from coatcheck.store.database import ReadTransaction, WorkerTransaction
from coatcheck.store.sessions import SessionSummary
from coatcheck_client.wire import SessionOut, SessionPage, SessionPatch


class Sessions:
    """The use cases behind ``/v1/sessions``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def page(self, context: RequestContext, page_size: int, page_token: str | None, name: str | None) -> SessionPage:
        """Newest first; a keyset cursor, so that a session created meanwhile moves nothing. By name: the caller's own, or none."""
        context.require(Operation.SESSIONS)
        if name is not None:
            summary = await self._parts.database.read(context.scope, lambda tx: _own_summary(context, tx, name))
            return SessionPage(sessions=[] if summary is None else [_out(summary)])
        cursor = self._parts.keyring.cursor(context.tenant_id)
        after = _position(cursor.open("sessions", str(context.principal_id), page_token)) if page_token else None
        found = await self._parts.database.read(context.scope, lambda tx: sessions.page(tx, after, page_size + 1, context.sessions))
        page = found[:page_size]
        token = None
        if len(found) > page_size:
            last = page[-1].session
            token = cursor.seal("sessions", str(context.principal_id), f"{last.created_at.isoformat()}|{last.session_id}")
        return SessionPage(sessions=[_out(summary) for summary in page], next_page_token=token)

    async def one(self, context: RequestContext, session_id: UUID) -> SessionOut:
        context.require(Operation.SESSIONS)

        async def work(tx: ReadTransaction) -> SessionSummary | None:
            await session_by_id(context, tx, session_id)
            return await sessions.summary(tx, session_id)

        summary = await self._parts.database.read(context.scope, work)
        if summary is None:
            raise NotFound
        return _out(summary)

    async def patch(self, context: RequestContext, session_id: UUID, patch: SessionPatch) -> SessionOut:
        """Changes visibility and participants. Effective at once in PostgreSQL; the index follows by outbox.

        What is not asked for stays as it stands when it is this change's turn: of two at once neither takes the other's back.
        """
        context.require(Operation.SESSIONS)
        await owned_session(context, self._parts.database, session_id)
        asked = Visibility.parse(patch.visibility) if patch.visibility is not None else None
        if asked is not None:
            require_visibility(context, asked)

        async def work(tx: WorkerTransaction) -> SessionSummary:
            if asked is not None and asked.team_id is not None and not await teams.lock(tx, asked.team_id):
                raise Forbidden("You are not a member of that team.")
            await sessions.lock(tx, session_id)
            await require_standing(tx, context, self._parts.clock)
            session = await sessions.find_to_change(tx, session_id)
            if session is None:
                raise NotFound
            visibility = session.visibility if asked is None else asked
            participants = session.participants if patch.participants is None else tuple(dict.fromkeys(patch.participants))
            known = await principals.existing(tx, participants)
            if set(participants) - known:
                raise InvalidRequest("A participant is not a principal of this tenant.")
            acl = visibility.readers(session.owner_id, participants)
            writers = visibility.writers(session.owner_id, participants)
            if not await sessions.set_visibility(tx, session_id, visibility, participants, acl, writers):
                raise NotFound
            await tombstones.share_handoffs(tx, session_id, acl)
            await outbox.enqueue(tx, self._parts.new_id(), OutboxKind.ACL, session_id)
            for change in _changes(session, visibility, participants):
                await audit.record(tx, self._parts.new_id(), context.actor, change, "session", str(session_id))
            summary = await sessions.summary(tx, session_id)
            if summary is None:
                raise NotFound
            return summary

        # Not read again as the caller: an operator may change what it may not read.
        return _out(await self._parts.database.work(context.tenant_scope, work))


def _changes(old: Session, visibility: Visibility, participants: tuple[UUID, ...]) -> list[str]:
    """What the audit says: to which kind of visibility, and whether others take part."""
    changes = []
    if old.visibility != visibility:
        changes.append(f"session.visibility.{visibility.kind}")
    if set(old.participants) != set(participants):
        changes.append("session.participants")
    return changes


def _out(summary: SessionSummary) -> SessionOut:
    session = summary.session
    return SessionOut(
        session_id=session.session_id,
        name=session.name,
        owner_id=session.owner_id,
        visibility=str(session.visibility),
        participants=list(session.participants),
        created_at=session.created_at,
        manifests=summary.manifests,
        segments=summary.segments,
    )


async def _own_summary(context: RequestContext, tx: ReadTransaction, name: str) -> SessionSummary | None:
    session = await own_session(context, tx, name)
    return None if session is None else await sessions.summary(tx, session.session_id)


def _position(text: str) -> tuple[datetime, UUID]:
    created_at, _, session_id = text.partition("|")
    return datetime.fromisoformat(created_at), UUID(session_id)
