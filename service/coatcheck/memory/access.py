"""Which session a request means, and what the caller may do with it."""

from __future__ import annotations

import asyncio
from uuid import UUID

from coatcheck.domain.errors import Erased, FieldError, Forbidden, InvalidRequest, NotFound
from coatcheck.domain.runs import Run
from coatcheck.domain.sessions import Session, Visibility
from coatcheck.identity.context import RequestContext
from coatcheck.identity.operations import Operation
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import runs, sessions, tombstones
from coatcheck.store.database import Database, ReadTransaction
from coatcheck_client.wire import written_uuid


async def find_session(context: RequestContext, tx: ReadTransaction, reference: str) -> Session | None:
    """The session a reference names: its UUID, or the caller's own name for it. None for a name that is not in use.

    Raises NotFound for a UUID that names nothing the caller may read, Erased where it could have read it.
    """
    session_id = written_uuid(reference)
    return await own_session(context, tx, reference) if session_id is None else await session_by_id(context, tx, session_id)


async def own_session(context: RequestContext, tx: ReadTransaction, name: str) -> Session | None:
    """The caller's own session of this name: a name never means anybody else's."""
    session = await sessions.find_by_name(tx, context.principal_id, name)
    return session if session is None or _in_reach(context, session.session_id) else None


async def session_by_id(context: RequestContext, tx: ReadTransaction, session_id: UUID) -> Session:
    """Raises NotFound or Erased, as ``find_session``."""
    if not _in_reach(context, session_id):
        raise NotFound
    session = await sessions.find(tx, session_id)
    if session is not None:
        return session
    raise Erased if await was_erased(context, tx, "session", str(session_id)) else NotFound


def require_writer(context: RequestContext, session: Session) -> None:
    """Raises Forbidden unless the caller may add to the session."""
    if not set(session.writers) & set(context.scope.acl):
        raise Forbidden("You may read this session, but not add to it.")


async def run_by_id(context: RequestContext, tx: ReadTransaction, manifest_id: UUID) -> tuple[Run, Session]:
    """The run and its session. Raises NotFound or Erased, as ``find_session``."""
    run = await runs.find(tx, manifest_id)
    if run is not None:
        return run, await session_by_id(context, tx, run.session_id)
    raise Erased if await was_erased(context, tx, "manifest", str(manifest_id)) else NotFound


async def was_erased(context: RequestContext, tx: ReadTransaction, kind: str, key: str) -> bool:
    """Whether what stood under this key was erased, and the caller could have read it: to anybody else it never was."""
    stone = await tombstones.find(tx, kind, key)
    return stone is not None and (context.sessions is None or stone.session_id in context.sessions)


async def owned_session(context: RequestContext, database: Database, session_id: UUID) -> Session:
    """The session, for a change that only its owner or an operator may make. Raises NotFound, Erased, Forbidden."""
    if context.is_operator and _in_reach(context, session_id):
        session = await database.work(context.tenant_scope, lambda tx: sessions.find_any(tx, session_id))
        if session is not None and session.erased_at is None:
            return session
    session = await database.read(context.scope, lambda tx: session_by_id(context, tx, session_id))
    if session.owner_id != context.principal_id:
        raise Forbidden("Only the session's owner or an operator may do this.")
    return session


async def session_of_owned_run(context: RequestContext, database: Database, manifest_id: UUID) -> UUID:
    """The session of a run, for a change that only its owner or an operator may make. Raises as ``owned_session``."""
    if context.is_operator:
        run = await database.work(context.tenant_scope, lambda tx: runs.find(tx, manifest_id))
        if run is not None and not run.erased:
            return (await owned_session(context, database, run.session_id)).session_id
    _, session = await database.read(context.scope, lambda tx: run_by_id(context, tx, manifest_id))
    return (await owned_session(context, database, session.session_id)).session_id


def require_visibility(context: RequestContext, visibility: Visibility) -> None:
    """Raises Forbidden where the caller may not give a session this visibility."""
    if visibility.kind == "public":
        context.require(Operation.PUBLISH)
    if visibility.team_id is not None and visibility.team_id not in context.teams:
        raise Forbidden("You are not a member of that team.")


async def new_session(
    parts: Collaborators, context: RequestContext, name: str, visibility: Visibility, session_id: UUID | None = None
) -> Session:
    """The caller's own session, not stored yet.

    Raises InvalidRequest for a name that looks like a secret: it is shown as it is, and never rewritten.
    """
    session_id = session_id or parts.new_id()
    keys = parts.keyring.placeholder_keys(context.tenant_id, session_id)
    redacted = await asyncio.to_thread(parts.redactor.redact_text, name, keys)
    if redacted.counts:
        detail = "looks like a secret, and a session's name is not redacted"
        raise InvalidRequest(f"/session {detail}.", errors=[FieldError("/session", detail)])
    owner = context.principal_id
    return Session(
        session_id=session_id,
        name=name,
        owner_id=owner,
        visibility=visibility,
        acl=visibility.readers(owner, ()),
        writers=visibility.writers(owner, ()),
        participants=(),
        created_at=parts.clock(),
    )


def _in_reach(context: RequestContext, session_id: UUID) -> bool:
    return context.sessions is None or session_id in context.sessions
