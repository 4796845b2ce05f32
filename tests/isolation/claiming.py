"""Headers by which services are told, elsewhere, who is asking: here they are no credential."""

from __future__ import annotations

from uuid import UUID


def claiming(tenant_id: UUID, principal_id: UUID) -> dict[str, str]:
    """They all name this tenant and this principal."""
    tenant, principal = str(tenant_id), str(principal_id)
    return {
        "X-Tenant-Id": tenant,
        "X-Tenant": tenant,
        "Coatcheck-Tenant": tenant,
        "X-Principal-Id": principal,
        "X-User-Id": principal,
        "X-Forwarded-User": principal,
        "X-Original-URL": f"/v1/tenants/{tenant}",
        "X-Acl": "public",
        "Forwarded": f"for={principal}",
        "Cookie": f"tenant_id={tenant}; principal_id={principal}",
    }
