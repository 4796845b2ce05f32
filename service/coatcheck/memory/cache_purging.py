"""Purges of the response cache, and its figures: a caller's own, to an operator a principal's or the tenant's; also while off."""

from __future__ import annotations

from uuid import UUID

from coatcheck.domain.errors import FieldError, Forbidden, InvalidRequest, NotFound
from coatcheck.domain.response_cache import Fingerprint
from coatcheck.identity.cache_scopes import conversation_tag, source_tags
from coatcheck.identity.context import RequestContext
from coatcheck.identity.fingerprints import Fingerprints
from coatcheck.identity.operations import Operation
from coatcheck.memory.access import find_session
from coatcheck.memory.cache_circumstances import spellings
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import audit, cache_purge
from coatcheck.store.database import WorkerTransaction
from coatcheck_client.wire import CachePurge, CachePurgeOut, CacheStatsOut, written_uuid


class CachePurging:
    """The use cases behind ``/v1/cache/purge`` and ``GET /v1/cache``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def __call__(self, context: RequestContext, asked: CachePurge) -> CachePurgeOut:
        """Raises Forbidden, InvalidRequest, and NotFound or Erased for a session's id."""
        context.require(Operation.CACHE)
        writer = self._writer(context, asked)
        conversation, source = await self._conversation(context, asked.session, asked.whose), self._source(context, asked.source)

        async def work(tx: WorkerTransaction) -> int:
            purged = await cache_purge.purge(tx, writer, conversation, source)
            if asked.whose != "own":
                target = str(writer or context.tenant_id)
                await audit.record(tx, self._parts.new_id(), context.actor, "cache.purge", asked.whose, target)
            return purged

        return CachePurgeOut(purged=await self._parts.database.work(context.tenant_scope, work))

    async def stats(self, context: RequestContext, of_tenant: bool) -> CacheStatsOut:
        """Of a credential that is kept to some sessions: theirs. Raises Forbidden."""
        context.require(Operation.CACHE)
        if of_tenant:
            context.require_for_tenant(Operation.CACHE)
            if not context.is_operator:
                raise Forbidden("Only an operator sees what others have stored.")
        writer, now, within = None if of_tenant else context.principal_id, self._parts.clock(), context.sessions
        found = await self._parts.database.work(context.tenant_scope, lambda tx: cache_purge.stats(tx, writer, within, now))
        settings = self._parts.settings
        return CacheStatsOut(
            enabled=settings.response_cache,
            semantic=settings.response_cache_semantic and self._parts.lanes is not None,
            entries=found.entries,
            answer_bytes=found.answer_bytes,
            oldest_at=found.oldest,
        )

    def _writer(self, context: RequestContext, asked: CachePurge) -> UUID | None:
        """Whose entries go; None: everybody's."""
        if (asked.principal_id is not None) != (asked.whose == "principal"):
            detail = "belongs to whose = principal, and to nothing else"
            raise InvalidRequest(f"/principal_id {detail}.", errors=[FieldError("/principal_id", detail)])
        if asked.whose == "own":
            if context.sessions is not None and asked.session is None:
                raise Forbidden("The credential is kept to some sessions: name one of them.")
            return context.principal_id
        context.require_for_tenant(Operation.CACHE)
        if not context.is_operator:
            raise Forbidden("Only an operator purges what others have stored.")
        return asked.principal_id

    async def _conversation(self, context: RequestContext, name: str | None, whose: str) -> list[Fingerprint] | None:
        if name is None:
            return None
        if whose != "own" and (session_id := written_uuid(name)) is not None:
            # An operator need not be able to read what it purges, nor need it exist any more.
            return [conversation_tag(prints, context.principal_id, session_id) for prints in self._prints(context)]
        session = await self._parts.database.read(context.scope, lambda tx: find_session(context, tx, name))
        if session is None and context.sessions is not None:
            raise NotFound
        subject = session.session_id if session is not None else name
        return [conversation_tag(prints, context.principal_id, subject) for prints in self._prints(context)]

    def _source(self, context: RequestContext, source: str | None) -> list[Fingerprint] | None:
        if source is None:
            return None
        return [tag for prints in self._prints(context) for tag in source_tags(prints, spellings(source))]

    def _prints(self, context: RequestContext) -> list[Fingerprints]:
        return self._parts.keyring.earlier_cache_fingerprints(context.tenant_id)
