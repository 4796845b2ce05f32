"""What one tenant may take: rates by token buckets in this process, stored quotas by counting rows that all processes share.

One process owns a data directory, so its buckets are all there are. Several API processes on one PostgreSQL have buckets each:
a tenant's rate is then so many times the limit, while what it has stored counts once, whoever stored it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from coatcheck.domain.errors import QuotaExceeded, RateLimited
from coatcheck.domain.limits import TenantLimits
from coatcheck.domain.scopes import TenantScope
from coatcheck.identity.scopes import tenant_scope
from coatcheck.ops.buckets import TokenBucket
from coatcheck.ops.meter import Meter
from coatcheck.ops.metrics import Metrics
from coatcheck.settings import Settings
from coatcheck.store import cache_purge
from coatcheck.store import limits as limits_store
from coatcheck.store.database import AnyWriteTransaction, Database

FRESH_S = 5.0
"""How old what this process knows of a tenant's limits may be: a change elsewhere counts within this time."""
SAID = {
    "requests_per_minute": "requests",
    "bytes_per_minute": "bytes",
    "embedding_seconds_per_minute": "embedding seconds",
}


def default_limits(settings: Settings) -> TenantLimits:
    """What every tenant may take that has no limits of its own."""
    return TenantLimits(
        requests_per_minute=settings.tenant_requests_per_minute,
        bytes_per_minute=settings.tenant_bytes_per_minute,
        embedding_seconds_per_minute=settings.tenant_embedding_seconds_per_minute,
        max_segments=settings.tenant_max_segments,
        max_bytes=settings.tenant_max_bytes,
    )


@dataclass(slots=True)
class _Known:
    limits: TenantLimits
    read_at: float
    buckets: dict[str, TokenBucket] = field(default_factory=dict)


class Limiter:
    """Admits or refuses, and charges. On the event loop; only the meter is written by other threads."""

    def __init__(
        self,
        database: Database,
        defaults: TenantLimits,
        embedding: Meter,
        metrics: Metrics,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._defaults = defaults
        self._embedding = embedding
        self._metrics = metrics
        self._now = now
        self._known: dict[UUID, _Known] = {}

    async def admit(self, tenant_id: UUID, announced_bytes: int) -> None:
        """One request with a body of so many bytes; charged only if it is let in. Raises RateLimited, StoreUnavailable."""
        await self.of(tenant_id)
        costs = {"requests_per_minute": 1.0, "bytes_per_minute": float(announced_bytes)}
        for name, cost in costs.items():
            self._require(tenant_id, name, cost)
        for name, cost in costs.items():
            self._take(tenant_id, name, cost)

    def arrived(self, tenant_id: UUID, size: int) -> None:
        """Bytes that no header announced. Raises RateLimited once the tenant has no more in hand; they are charged all the same."""
        if tenant_id in self._known:
            wait = self._wait_s(tenant_id, "bytes_per_minute", 1.0)
            self._take(tenant_id, "bytes_per_minute", float(size))
            if wait:
                self._refuse("bytes_per_minute", wait)

    def owe(self, tenant_id: UUID, size: int) -> None:
        """Bytes of a request that is worked on while they arrive: it is not broken off, and the next one waits for it."""
        self._take(tenant_id, "bytes_per_minute", float(size))

    async def require_embedding(self, scope: TenantScope) -> None:
        """Raises RateLimited while the tenant has used more of embedder and reranker than it may; they are charged afterwards."""
        await self.of(scope.tenant_id)
        self._take(scope.tenant_id, "embedding_seconds_per_minute", self._embedding.take(scope.tenant_id))
        self._require(scope.tenant_id, "embedding_seconds_per_minute", 0.0)

    async def require_room(self, scope: TenantScope) -> None:
        """Raises QuotaExceeded when nothing more fits, were there no cached answers: before anything is planned.

        What does not quite fit, ``check_fits`` refuses.
        """
        limits = await self.of(scope.tenant_id)
        if not limits.counts_stored:
            return
        stored = await self._database.work(scope, limits_store.stored)
        if stored.fills(limits) and stored.without_bytes(await self._database.work(scope, cache_purge.answer_bytes)).fills(limits):
            raise self.counted(QuotaExceeded())

    async def check_fits(self, tx: AnyWriteTransaction, limits: TenantLimits) -> None:
        """At the end of a transaction that stores: raises QuotaExceeded, which rolls it back."""
        if limits.counts_stored:
            await limits_store.lock_stored(tx)
            stored = await limits_store.stored(tx)
            if stored.exceeds(limits):
                raise QuotaExceeded(beyond_bytes=stored.beyond_bytes(limits))

    async def make_room(self, scope: TenantScope, full: QuotaExceeded) -> None:
        """Cached answers go, the oldest first, where that makes room for what did not fit. Raises ``full`` where it does not."""
        size = full.beyond_bytes
        if not size or not await self._database.work(scope, lambda tx: cache_purge.oldest(tx, size)):
            raise self.counted(full)

    def counted(self, full: QuotaExceeded) -> QuotaExceeded:
        """The refusal, in the metrics."""
        self._metrics.limited.labels("stored").inc()
        return full

    async def of(self, tenant_id: UUID) -> TenantLimits:
        """The tenant's limits as this process knows them. Raises StoreUnavailable."""
        now = self._now()
        known = self._known.get(tenant_id)
        if known is None or now - known.read_at >= FRESH_S:
            own = await self._database.work(tenant_scope(tenant_id), limits_store.find)
            known = self._known.setdefault(tenant_id, _Known(own, now))
            known.limits, known.read_at = own.over(self._defaults), now
            self._fit_buckets(known, now)
        return known.limits

    def forget(self, tenant_id: UUID) -> None:
        """Its limits were changed: they are read anew by the next request, and what was taken stays taken."""
        if tenant_id in self._known:
            self._known[tenant_id].read_at = self._now() - FRESH_S

    def _fit_buckets(self, known: _Known, now: float) -> None:
        for name in SAID:
            rate = getattr(known.limits, name)
            if rate is None:
                known.buckets.pop(name, None)
            elif name in known.buckets:
                known.buckets[name].change(rate, now)
            else:
                known.buckets[name] = TokenBucket(rate, now)

    def _bucket(self, tenant_id: UUID, name: str) -> TokenBucket | None:
        known = self._known.get(tenant_id)
        return None if known is None else known.buckets.get(name)

    def _wait_s(self, tenant_id: UUID, name: str, cost: float) -> float:
        bucket = self._bucket(tenant_id, name)
        return 0.0 if bucket is None else bucket.wait_s(cost, self._now())

    def _require(self, tenant_id: UUID, name: str, cost: float) -> None:
        wait = self._wait_s(tenant_id, name, cost)
        if wait:
            self._refuse(name, wait)

    def _take(self, tenant_id: UUID, name: str, cost: float) -> None:
        bucket = self._bucket(tenant_id, name)
        if bucket is not None:
            bucket.take(cost, self._now())

    def _refuse(self, name: str, wait_s: float) -> None:
        self._metrics.limited.labels(name).inc()
        raise RateLimited(f"The tenant has taken as many {SAID[name]} as it may for now.", wait_s=wait_s)
