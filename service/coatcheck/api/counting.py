"""The use cases with their outcomes counted: what was compacted, replaced and recalled, in figures alone.

It stands around the use cases, so that every door (HTTP, MCP) counts alike, refusals included.
"""

from __future__ import annotations

import dataclasses

from coatcheck.domain.errors import CoatcheckError
from coatcheck.identity.context import RequestContext
from coatcheck.memory.compact import Compacted, CompactionCommand
from coatcheck.memory.services import Services
from coatcheck.ops.metrics import Metrics
from coatcheck_client.wire import (
    CacheLookup,
    CacheLookupOut,
    CachePurge,
    CachePurgeOut,
    CacheStore,
    CacheStoreOut,
    RecallRequest,
    RecallResponse,
)


def counted(services: Services, metrics: Metrics) -> Services:
    """The same use cases; compactions and recalls are counted on their way out."""

    async def compact(context: RequestContext, command: CompactionCommand) -> Compacted:
        try:
            compacted = await services.compact(context, command)
        except CoatcheckError as error:
            metrics.compactions.labels(error.slug).inc()
            raise
        metrics.compactions.labels("created" if compacted.created else "replayed").inc()
        if compacted.created:
            _count_run(metrics, compacted)
        return compacted

    async def recall(context: RequestContext, request: RecallRequest, deadline_s: float) -> RecallResponse:
        found = await services.recall(context, request, deadline_s)
        legs = "+".join(sorted(leg for leg, state in found.legs.items() if state == "used"))
        metrics.recalls.labels(legs or "none").inc()
        return found

    async def cache_lookup(context: RequestContext, request: CacheLookup) -> CacheLookupOut:
        found = await services.cache_lookup(context, request)
        metrics.cache_lookups.labels(f"{found.outcome}:{found.reason}" if found.reason else found.outcome).inc()
        return found

    async def cache_store(context: RequestContext, request: CacheStore) -> CacheStoreOut:
        kept = await services.cache_store(context, request)
        metrics.cache_stores.labels(kept.reason or "stored").inc()
        return kept

    async def cache_purge(context: RequestContext, request: CachePurge) -> CachePurgeOut:
        done = await services.cache_purge(context, request)
        metrics.cache_purged.inc(done.purged)
        return done

    return dataclasses.replace(
        services, compact=compact, recall=recall, cache_lookup=cache_lookup, cache_store=cache_store, cache_purge=cache_purge
    )


def _count_run(metrics: Metrics, compacted: Compacted) -> None:
    run = compacted.response
    for route in ("keep", "compress", "drop", "already_stored"):
        metrics.segments.labels(route).inc(getattr(run.segments, route))
    for kind, count in run.redactions.by_kind.items():
        metrics.redactions.labels(kind).inc(count)
    for stage, milliseconds in run.timings_ms.items():
        metrics.compaction_seconds.labels(stage).observe(milliseconds / 1_000)
