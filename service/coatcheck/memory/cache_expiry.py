"""What leaves the response cache by itself: with what is erased, with older redaction rules, with age."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from coatcheck.domain.errors import StoreUnavailable
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.cache_scopes import schema_print, source_tags
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import cache_purge, directory
from coatcheck.store.database import WorkerTransaction

WALK_INTERVAL_S = 60.0


async def forget_answers(parts: Collaborators, tx: WorkerTransaction, session_id: UUID, manifest_ids: Sequence[UUID]) -> int:
    """In the transaction that marks an erasure: every answer of the session, and whoever's that rests on what is erased of it.

    Returns how many went. Who stores such an answer shares the session's lock: it ends before, and goes; or begins after, and
    finds nothing to rest on.
    """
    names = [str(session_id), *(str(manifest_id) for manifest_id in manifest_ids)]
    tags = [tag for prints in parts.keyring.earlier_cache_fingerprints(tx.scope.tenant_id) for tag in source_tags(prints, names)]
    return await cache_purge.forget_session(tx, session_id, tags)


async def forget_outdated_answers(parts: Collaborators, scope: TenantScope) -> None:
    """A rescan makes finds permanent: an answer that today's rules have not seen is not kept beside them."""
    schema = schema_print(parts.keyring.cache_fingerprints(scope.tenant_id), parts.redactor.revision)
    await parts.database.work(scope, lambda tx: cache_purge.outdated(tx, schema))


class CacheExpiry:
    """Deletes what is too old to be found. A look-up never waits for it: an expired entry is eligible for nobody."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def run(self) -> None:
        """Until it is cancelled: a walk over every tenant, then a pause."""
        while True:
            with contextlib.suppress(StoreUnavailable):
                await self.walk()
            await asyncio.sleep(WALK_INTERVAL_S)

    async def walk(self) -> int:
        """Returns how many entries went. Raises StoreUnavailable."""
        gone = 0
        for tenant in await self._parts.database.directory(directory.tenants):
            gone += await self._of_one(tenant_scope(tenant.tenant_id))
        return gone

    async def _of_one(self, scope: TenantScope) -> int:
        now, gone = self._parts.clock(), 0
        longest = timedelta(seconds=self._parts.settings.response_cache_ttl_s)
        while True:
            at_once = await self._parts.database.work(scope, lambda tx: cache_purge.expired(tx, now, longest))
            gone += at_once
            if at_once < cache_purge.EXPIRED_AT_ONCE:
                return gone
