"""The response cache: may this caller reuse an answer, and may this answer be kept? One object for HTTP and for the gateway.

    who asks -> under what -> one scope, or a bypass that names what is unknown
    look-up: the very prompt within the scope; else, where asked for, by meaning within the scope (``cache_matching``)
    store: the scope of the look-up still stands, no secret, not too large -> one row under row security, then room is made

No path leads from an error to a wider search: a cache that is late or out is bypassed, and a refusal is a refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from coatcheck.domain.canonical import decode, parse_text, to_bytes, to_text
from coatcheck.domain.errors import QuotaExceeded, RedactionFailed, StorageFull, StoreUnavailable
from coatcheck.domain.response_cache import CacheEntry, CacheScope, Dimension, PromptPrint, Sharing, Stated
from coatcheck.identity.cache_scopes import cache_scope, require_sharing
from coatcheck.identity.context import RequestContext
from coatcheck.identity.fingerprints import Fingerprints
from coatcheck.identity.operations import Operation
from coatcheck.memory.cache_circumstances import looked_up, stated_alone
from coatcheck.memory.cache_matching import Matcher
from coatcheck.memory.collaborators import Collaborators
from coatcheck.ops.slots import FairSlots
from coatcheck.store import cache_purge, response_cache, sessions
from coatcheck.store.database import ReadTransaction, WorkerTransaction, WriteTransaction
from coatcheck.store.response_cache import Embedded
from coatcheck_client.wire import (
    CacheCircumstances,
    CacheLookup,
    CacheLookupOut,
    CacheProvenance,
    CacheStore,
    CacheStoreOut,
)

OFF, UNAVAILABLE, QUOTA = "off", "unavailable", "quota"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request with all of it that needs no look at the database."""

    context: RequestContext
    sharing: Sharing
    prints: Fingerprints
    circumstances: CacheCircumstances
    stated: Stated
    prompt: PromptPrint


class ResponseCache:
    """The use cases behind ``/v1/cache/lookup`` and ``/v1/cache/store``."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts
        # Not those of plans: who compacts a long window is not to find its look-ups late meanwhile.
        self._computing = FairSlots(parts.settings.max_working)
        self._matcher = Matcher(parts, self._computing)

    async def lookup(self, context: RequestContext, asked: CacheLookup) -> CacheLookupOut:
        """Raises Forbidden, and NotFound or Erased for a session's id; whatever else is wrong bypasses the cache."""
        context.require(Operation.CACHE)
        sharing = Sharing.parse(asked.sharing)
        require_sharing(context, sharing)
        if not self._parts.settings.response_cache:
            return _bypassed(OFF)
        try:
            async with asyncio.timeout(self._parts.settings.response_cache_timeout_s):
                return await self._lookup(context, sharing, asked)
        except (TimeoutError, StoreUnavailable):
            return _bypassed(UNAVAILABLE)

    async def store(self, context: RequestContext, asked: CacheStore) -> CacheStoreOut:
        """Raises Forbidden, and NotFound or Erased for a session's id; whatever else is wrong keeps nothing."""
        context.require(Operation.CACHE)
        sharing = Sharing.parse(asked.sharing)
        require_sharing(context, sharing)
        if not sharing.is_private:
            context.require(Operation.CACHE_PUBLISH)
        if not self._parts.settings.response_cache:
            return _not_stored(OFF)
        try:
            async with asyncio.timeout(self._parts.settings.response_cache_timeout_s):
                self._parts.disk.require_room()
                return await self._store(context, sharing, asked)
        except QuotaExceeded as full:
            self._parts.limiter.counted(full)
            return _not_stored(QUOTA)
        except (TimeoutError, StoreUnavailable, StorageFull, RedactionFailed):
            return _not_stored(UNAVAILABLE)

    async def _read(self, context: RequestContext, sharing: Sharing, circumstances: CacheCircumstances) -> _Asked:
        prints = self._parts.keyring.cache_fingerprints(context.tenant_id)
        stated = await self._computing.in_thread(context.tenant_id, lambda: stated_alone(prints, circumstances))
        prompt = await self._matcher.read(context, prints, sharing.acl_key(context.principal_id), circumstances)
        return _Asked(context, sharing, prints, circumstances, stated, prompt)

    async def _lookup(self, context: RequestContext, sharing: Sharing, circumstances: CacheLookup) -> CacheLookupOut:
        asked = await self._read(context, sharing, circumstances)
        prompt = asked.prompt

        async def exact(tx: ReadTransaction) -> tuple[CacheScope | Dimension, CacheEntry | None]:
            scope = await self._scope(tx, asked)
            if isinstance(scope, Dimension):
                return scope, None
            return scope, await response_cache.find_exact(tx, scope, prompt, self._parts.clock())

        scope, entry = await self._parts.database.read(context.scope, exact)
        if isinstance(scope, Dimension):
            return _bypassed(scope.value)
        if entry is not None:
            return self._hit("exact", 1.0, scope, entry)
        nearest = await self._matcher.nearest(context, scope, prompt)
        if nearest.entry is not None:
            return self._hit("semantic", nearest.similarity, scope, nearest.entry)
        return await self._not_found(context, scope, prompt, nearest.reason)

    async def _not_found(self, context: RequestContext, scope: CacheScope, prompt: PromptPrint, reason: str) -> CacheLookupOut:
        """Says why. Only the caller's own sharing scope is looked at: what others have changes neither the words nor the time."""
        limit = self._parts.settings.response_cache_max_entries

        async def why(tx: ReadTransaction) -> tuple[int, str]:
            now = self._parts.clock()
            eligible = await response_cache.count_eligible(tx, scope, now, limit)
            other = await response_cache.same_prompt(tx, scope, prompt, now, context.sessions)
            difference = scope.dimensions.first_difference(other) if other is not None else None
            return eligible, "scope" if difference is None else difference.value

        eligible, dimension = await self._parts.database.read(context.scope, why)
        if eligible and dimension == "scope":
            return CacheLookupOut(outcome="miss", reason=reason, eligible=eligible, scope=scope.digest)
        return CacheLookupOut(outcome="ineligible", reason=dimension, eligible=eligible, scope=scope.digest)

    async def _store(self, context: RequestContext, sharing: Sharing, given: CacheStore) -> CacheStoreOut:
        if given.scope is None:
            return _not_stored("scope")
        raw = await self._computing.in_thread(context.tenant_id, lambda: to_bytes(given.answer))
        if len(raw) > self._parts.settings.response_cache_max_answer_bytes:
            return _not_stored("too-large")
        if await self._computing.in_thread(context.tenant_id, lambda: self._holds_secret(context, given)):
            return _not_stored("secret")
        asked, then = await self._read(context, sharing, given), given.scope
        embedded = await self._matcher.embedded(context, asked.prompt)
        now = self._parts.clock()
        life_s = min(given.ttl_s or self._parts.settings.response_cache_ttl_s, self._parts.settings.response_cache_ttl_s)
        entry = CacheEntry(self._parts.new_id(), raw, now, now + timedelta(seconds=life_s))
        limits = await self._parts.limiter.of(context.tenant_id)

        async def keep(tx: WriteTransaction) -> CacheScope | str:
            kept = await self._keep(tx, asked, then, embedded, entry)
            if isinstance(kept, CacheScope):
                await self._parts.limiter.check_fits(tx, limits)
            return kept

        kept = await self._parts.database.write(context.scope, keep)
        if not isinstance(kept, CacheScope):
            return _not_stored(kept)

        async def room(tx: WorkerTransaction) -> None:
            await cache_purge.make_room(tx, kept, asked.prompt, entry.entry_id, self._parts.settings.response_cache_max_entries)

        with contextlib.suppress(StoreUnavailable):  # it is kept; the next one makes room
            await self._parts.database.work(context.tenant_scope, room)
        return CacheStoreOut(stored=True, entry_id=entry.entry_id, expires_at=entry.expires_at)

    async def _keep(
        self, tx: WriteTransaction, asked: _Asked, then: str, embedded: Embedded | None, entry: CacheEntry
    ) -> CacheScope | str:
        """The scope it was kept under, or why it was not; ``then`` is the look-up's.

        No erasure of what it rests on ends between the look and the row.
        """
        scope = await self._scope(tx, asked)
        if isinstance(scope, CacheScope) and scope.ties.sessions:
            for session_id in scope.ties.sessions:
                await sessions.share(tx, session_id)
            scope = await self._scope(tx, asked)
        if isinstance(scope, Dimension):
            return scope.value
        if scope.digest != then:
            return "scope-changed"
        await response_cache.insert(tx, scope, asked.prompt, embedded, entry)
        return scope

    async def _scope(self, tx: ReadTransaction, asked: _Asked) -> CacheScope | Dimension:
        known = await looked_up(asked.context, tx, asked.prints, asked.sharing, asked.circumstances, asked.stated)
        return cache_scope(asked.context, asked.prints, asked.sharing, known.stated, known.ties, self._parts.redactor.revision)

    def _holds_secret(self, context: RequestContext, given: CacheStore) -> bool:
        """An answer that redaction would change is not the answer any more: it is not kept at all."""
        keys = self._parts.keyring.placeholder_keys(context.tenant_id, context.principal_id)
        text = given.answer if isinstance(given.answer, str) else to_text(given.answer)
        return bool(self._parts.redactor.redact_text(text, keys).counts)

    def _hit(self, match: Literal["exact", "semantic"], similarity: float, scope: CacheScope, entry: CacheEntry) -> CacheLookupOut:
        provenance = CacheProvenance(
            entry_id=entry.entry_id,
            match=match,
            similarity=round(similarity, 4),
            sharing=str(scope.sharing),
            stored_at=entry.created_at,
            age_s=max(0.0, (self._parts.clock() - entry.created_at).total_seconds()),
            expires_at=entry.expires_at,
        )
        return CacheLookupOut(
            outcome="hit-exact" if match == "exact" else "hit-semantic",
            answer=parse_text(decode(entry.answer)),
            provenance=provenance,
            scope=scope.digest,
        )


def _bypassed(reason: str) -> CacheLookupOut:
    return CacheLookupOut(outcome="bypassed", reason=reason)


def _not_stored(reason: str) -> CacheStoreOut:
    return CacheStoreOut(stored=False, reason=reason)
