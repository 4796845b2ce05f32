"""The scopes of work that no caller asked for: workers, the reconciler, the tenant walk of a scan."""

from __future__ import annotations

from uuid import UUID

from coatcheck.domain.scopes import TenantScope


def tenant_scope(tenant_id: UUID) -> TenantScope:
    """One tenant, whole. For work inside the service; a request's comes from its context."""
    return TenantScope(tenant_id)
