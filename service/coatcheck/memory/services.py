"""Every use case as one value: what the HTTP routers, MCP and nothing else call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from coatcheck.identity.context import RequestContext
from coatcheck.memory.auditing import Audit
from coatcheck.memory.cache_purging import CachePurging
from coatcheck.memory.collaborators import Collaborators
from coatcheck.memory.compact import Compact, Compacted, CompactionCommand
from coatcheck.memory.delegations import Delegations
from coatcheck.memory.erasing import Eraser
from coatcheck.memory.finish import Finisher
from coatcheck.memory.forget import Forget
from coatcheck.memory.housekeeping import Housekeeper
from coatcheck.memory.importing import Importer
from coatcheck.memory.integrity import Scanner
from coatcheck.memory.issuers import Issuers
from coatcheck.memory.jobs import JobKind, Jobs
from coatcheck.memory.keys import Keys
from coatcheck.memory.offboarding import Offboarding
from coatcheck.memory.presenting import Presenter
from coatcheck.memory.principals import Principals
from coatcheck.memory.projection import Projector
from coatcheck.memory.readiness import Readiness, ReadinessReport
from coatcheck.memory.reading import Reading
from coatcheck.memory.recall import Recall
from coatcheck.memory.receipts import Receipts
from coatcheck.memory.reconcile import Reconciler
from coatcheck.memory.repair import Repair
from coatcheck.memory.rescan import Rescan
from coatcheck.memory.response_cache import ResponseCache
from coatcheck.memory.retention import Retention
from coatcheck.memory.sessions import Sessions
from coatcheck.memory.teams import Teams
from coatcheck.memory.tenant_limits import TenantLimitsAdmin
from coatcheck.memory.tenants import Tenants
from coatcheck.memory.transfer import Transfer
from coatcheck_client.wire import (
    CacheLookup,
    CacheLookupOut,
    CachePurge,
    CachePurgeOut,
    CacheStatsOut,
    CacheStore,
    CacheStoreOut,
    EntryPage,
    ErasureOut,
    ImportResponse,
    JobOut,
    ManifestOut,
    RecallRequest,
    RecallResponse,
    SegmentOut,
    SessionOut,
    SessionPage,
    SessionPatch,
    WindowOut,
)

Context = RequestContext


class StartJob(Protocol):
    def __call__(self, context: Context, kind: JobKind, *, index: bool = True) -> Awaitable[JobOut]: ...


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases. Each takes the caller's context first; what it raises stands at its class."""

    compact: Callable[[Context, CompactionCommand], Awaitable[Compacted]]
    recall: Callable[[Context, RecallRequest, float], Awaitable[RecallResponse]]
    """The last is the deadline, in seconds from now."""
    manifest: Callable[[Context, UUID], Awaitable[ManifestOut]]
    entries: Callable[[Context, UUID, int, str | None, bool], Awaitable[EntryPage]]
    window: Callable[[Context, UUID], Awaitable[WindowOut]]
    segment: Callable[[Context, str], Awaitable[SegmentOut]]
    sessions: Callable[[Context, int, str | None, str | None], Awaitable[SessionPage]]
    session: Callable[[Context, UUID], Awaitable[SessionOut]]
    patch_session: Callable[[Context, UUID, SessionPatch], Awaitable[SessionOut]]
    erase_session: Callable[[Context, UUID], Awaitable[UUID]]
    erase_manifest: Callable[[Context, UUID], Awaitable[UUID]]
    receipts: Receipts
    retention: Retention
    erase_tenant: Callable[[Context, UUID], Awaitable[ErasureOut]]
    export_session: Callable[[Context, UUID], Awaitable[AsyncIterator[bytes]]]
    import_lines: Callable[[Context, AsyncIterator[bytes]], Awaitable[ImportResponse]]
    start_job: StartJob
    job: Callable[[Context, JobKind, UUID], Awaitable[JobOut]]
    keys: Keys
    tenants: Tenants
    tenant_limits: TenantLimitsAdmin
    cache_lookup: Callable[[Context, CacheLookup], Awaitable[CacheLookupOut]]
    cache_store: Callable[[Context, CacheStore], Awaitable[CacheStoreOut]]
    cache_purge: Callable[[Context, CachePurge], Awaitable[CachePurgeOut]]
    cache_stats: Callable[[Context, bool], Awaitable[CacheStatsOut]]
    principals: Principals
    teams: Teams
    delegations: Delegations
    issuers: Issuers
    audit: Audit
    readiness: Callable[[], Awaitable[ReadinessReport]]


@dataclass(frozen=True, slots=True)
class UseCases:
    """The services with the parts of them that the composition root starts and stops."""

    services: Services
    compact: Compact
    reconciler: Reconciler
    projector: Projector
    eraser: Eraser
    repair: Repair
    jobs: Jobs
    housekeeper: Housekeeper
    offboarding: Offboarding


def build(parts: Collaborators) -> UseCases:
    """Wires the use cases to one another."""
    projector = Projector(parts)
    finisher = Finisher(parts, projector)
    eraser = Eraser(parts, projector)
    presenter = Presenter(parts.redactor, parts.keyring)
    reading = Reading(parts, presenter)
    scanner = Scanner(parts)
    reconciler = Reconciler(parts, finisher, eraser, projector)
    repair = Repair(parts, scanner, reconciler, projector)
    jobs = Jobs(parts, scanner, repair, reconciler, Rescan(parts, projector))
    compact, sessions, forget = Compact(parts, finisher, presenter), Sessions(parts), Forget(parts, eraser)
    transfer = Transfer(parts, reading, Importer(parts, finisher))
    cache, purging = ResponseCache(parts), CachePurging(parts)
    retention, offboarding = Retention(parts), Offboarding(parts, jobs)
    services = Services(
        compact=compact,
        recall=Recall(parts, presenter),
        manifest=reading.manifest,
        entries=reading.entries,
        window=reading.window,
        segment=reading.segment,
        sessions=sessions.page,
        session=sessions.one,
        patch_session=sessions.patch,
        erase_session=forget.session,
        erase_manifest=forget.manifest,
        receipts=Receipts(parts),
        retention=retention,
        erase_tenant=offboarding.erase,
        export_session=transfer.export_session,
        import_lines=transfer.import_lines,
        start_job=jobs.start,
        job=jobs.one,
        keys=Keys(parts),
        tenants=Tenants(parts),
        tenant_limits=TenantLimitsAdmin(parts),
        cache_lookup=cache.lookup,
        cache_store=cache.store,
        cache_purge=purging,
        cache_stats=purging.stats,
        principals=Principals(parts),
        teams=Teams(parts),
        delegations=Delegations(parts),
        issuers=Issuers(parts),
        audit=Audit(parts),
        readiness=Readiness(parts),
    )
    housekeeper = Housekeeper(parts, retention, offboarding)
    return UseCases(services, compact, reconciler, projector, eraser, repair, jobs, housekeeper, offboarding)
