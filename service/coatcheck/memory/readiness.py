"""Whether the service can do its work now, and what it owes."""

from __future__ import annotations

from dataclasses import dataclass

from coatcheck.domain.errors import CoatcheckError
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.collaborators import Collaborators
from coatcheck.store import directory, outbox


@dataclass(frozen=True, slots=True)
class ReadinessReport:
    """``ready`` is what the status says; the rest is shown with ``?verbose``. Names and numbers, never content."""

    ready: bool
    degraded: bool
    """Something is missing without which requests are served all the same, or some of them."""
    checks: dict[str, str]
    durability: dict[str, str]
    queue_age_s: float
    pending: int
    quarantined: int
    free_bytes: int


class Readiness:
    """Asks the database, the index and the disk, and counts the outbox of every tenant."""

    def __init__(self, parts: Collaborators) -> None:
        self._parts = parts

    async def __call__(self) -> ReadinessReport:
        checks: dict[str, str] = {}
        durability: dict[str, str] = {}
        pending, quarantined, oldest_s = 0, 0, 0.0
        try:
            durability = await self._parts.database.check_durability()
            pending, quarantined, oldest_s = await self._queue()
            checks["postgresql"] = "ok"
        except CoatcheckError as error:
            checks["postgresql"] = error.slug
        try:
            await self._parts.index.check()
            checks["index"] = "ok"
        except CoatcheckError as error:
            checks["index"] = error.slug
        checks["drain"] = "draining" if self._parts.state.draining else "ok"
        checks |= {stage: f"absent: {reason}" for stage, reason in self._parts.absent.items()}
        checks["generation"] = "building" if self._parts.state.building else "ok"
        free_bytes = self._parts.disk.free_bytes()
        checks["disk"] = "low" if free_bytes < self._parts.disk.min_free_bytes else "ok"
        ready = all(checks[name] == "ok" for name in ("postgresql", "index", "drain"))
        metrics = self._parts.metrics
        metrics.outbox_pending.set(pending)
        metrics.outbox_quarantined.set(quarantined)
        metrics.outbox_oldest_age_seconds.set(oldest_s)
        metrics.disk_free_bytes.set(free_bytes)
        degraded = checks["disk"] != "ok" or bool(self._parts.absent)
        return ReadinessReport(ready, degraded, checks, durability, oldest_s, pending, quarantined, free_bytes)

    async def _queue(self) -> tuple[int, int, float]:
        pending, quarantined, oldest_s = 0, 0, 0.0
        now = self._parts.clock()
        for tenant in await self._parts.database.directory(directory.tenants):
            stats = await self._parts.database.work(tenant_scope(tenant.tenant_id), outbox.stats)
            pending += stats.pending
            quarantined += stats.quarantined
            if stats.oldest_at is not None:
                oldest_s = max(oldest_s, (now - stats.oldest_at).total_seconds())
        return pending, quarantined, oldest_s
