"""The tables. Every key of a tenant's table begins with ``tenant_id``; policies stand in ``policies``."""

from coatcheck.store.tables.base import metadata
from coatcheck.store.tables.cache import cache_entries, cache_ties
from coatcheck.store.tables.content import blobs, entries, reductions, runs, segments, sessions
from coatcheck.store.tables.directory import api_keys, delegations, issuers, memberships, principals, teams, tenants
from coatcheck.store.tables.lifecycle import erasures, retention, root_keys, stored_usage, tenant_limits
from coatcheck.store.tables.work import audit, generations, outbox, projections, tombstones

__all__ = [
    "api_keys",
    "audit",
    "blobs",
    "cache_entries",
    "cache_ties",
    "delegations",
    "entries",
    "erasures",
    "generations",
    "issuers",
    "memberships",
    "metadata",
    "outbox",
    "principals",
    "projections",
    "reductions",
    "retention",
    "root_keys",
    "runs",
    "segments",
    "sessions",
    "stored_usage",
    "teams",
    "tenant_limits",
    "tenants",
    "tombstones",
]
