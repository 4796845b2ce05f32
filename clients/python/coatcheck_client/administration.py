"""What an operator asks: scans and repairs (jobs that are started and followed), keys, tenants and their limits, retention.

Each function is a flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from coatcheck_client.flows import Flow, Pause, Send, at_page, every_page, json_body, read, request, without_nulls
from coatcheck_client.operations import JSON
from coatcheck_client.wire import (
    ErasureOut,
    JobOut,
    KeyOut,
    KeyPage,
    RetentionPolicy,
    TenantLimits,
    TenantLimitsOut,
    TenantOut,
    TenantPage,
)

Progress = Callable[[JobOut], None]
FIRST_POLL_S = 0.05
LAST_POLL_S = 2.0


def scan(*, index: bool = True, on_progress: Progress | None = None) -> Flow[JobOut]:
    """Checks every retained segment, and with ``index`` every live point; returns the finished job with its findings."""
    return (yield from _job("scan", {"index": index}, on_progress))


def repair(*, index: bool = True, on_progress: Progress | None = None) -> Flow[JobOut]:
    """Repairs what a scan would find and what can be repaired; returns the finished job."""
    return (yield from _job("repair", {"index": index}, on_progress))


def reconcile(*, on_progress: Progress | None = None) -> Flow[JobOut]:
    """Brings the index in line with the database, both ways; returns the finished job."""
    return (yield from _job("reconcile", {}, on_progress))


def redact_rescan(*, on_progress: Progress | None = None) -> Flow[JobOut]:
    """Redacts everything stored again by today's rules, and makes the finds permanent; returns the finished job."""
    return (yield from _job("redact-rescan", {}, on_progress))


def keys() -> Flow[list[KeyOut]]:
    """All API keys of the tenant, without their secrets."""
    return (
        yield from every_page(
            lambda token: read(Send("GET", "/v1/admin/keys", params=at_page(token)), KeyPage), lambda page: page.keys
        )
    )


def create_key(
    name: str,
    *,
    principal_id: UUID | str | None = None,
    operations: Sequence[str] | None = None,
    sessions: Sequence[UUID | str] | None = None,
    expires_at: datetime | None = None,
) -> Flow[KeyOut]:
    """Makes a key. ``key`` in the answer is the only time that it is shown."""
    body = without_nulls(
        name=name,
        principal_id=principal_id,
        operations=None if operations is None else list(operations),
        sessions=None if sessions is None else [str(s) for s in sessions],
        expires_at=expires_at,
    )
    return (yield from read(Send("POST", "/v1/admin/keys", json_body(body), headers=JSON), KeyOut))


def revoke_key(key_id: UUID | str) -> Flow[None]:
    """Revokes a key at once."""
    yield from request(Send("DELETE", f"/v1/admin/keys/{key_id}"))


def rotate_key(key_id: UUID | str) -> Flow[KeyOut]:
    """Replaces a key by a new one of the same rights."""
    return (yield from read(Send("POST", f"/v1/admin/keys/{key_id}/rotate", json_body({}), headers=JSON), KeyOut))


def tenants() -> Flow[list[TenantOut]]:
    """All tenants of the installation."""
    page = yield from read(Send("GET", "/v1/admin/tenants"), TenantPage)
    return page.tenants


def create_tenant(name: str) -> Flow[TenantOut]:
    """Makes a tenant. ``key`` in the answer is its first operator's, shown this once."""
    return (yield from read(Send("POST", "/v1/admin/tenants", json_body({"name": name}), headers=JSON), TenantOut))


def tenant_limits(tenant_id: UUID | str) -> Flow[TenantLimitsOut]:
    """What a tenant may take, and what it has stored."""
    return (yield from read(Send("GET", f"/v1/admin/tenants/{tenant_id}/limits"), TenantLimitsOut))


def set_tenant_limits(tenant_id: UUID | str, limits: TenantLimits) -> Flow[TenantLimitsOut]:
    """Sets all of a tenant's own limits; what is null is the installation's default."""
    body = json_body(limits.model_dump(exclude_none=True))
    return (yield from read(Send("PUT", f"/v1/admin/tenants/{tenant_id}/limits", body, headers=JSON), TenantLimitsOut))


def erase_tenant(tenant_id: UUID | str) -> Flow[ErasureOut]:
    """Off-boards a tenant: everything of it is erased. The same receipt again for one that is gone already."""
    return (yield from read(Send("DELETE", f"/v1/admin/tenants/{tenant_id}"), ErasureOut))


def retention() -> Flow[RetentionPolicy]:
    """For how many days sessions are kept, by kind."""
    return (yield from read(Send("GET", "/v1/admin/retention"), RetentionPolicy))


def set_retention(policy: RetentionPolicy) -> Flow[RetentionPolicy]:
    """Sets all of it; what is null is kept until somebody erases it."""
    body = json_body(policy.model_dump(exclude_none=True))
    return (yield from read(Send("PUT", "/v1/admin/retention", body, headers=JSON), RetentionPolicy))


def _job(kind: str, options: dict[str, bool], on_progress: Progress | None) -> Flow[JobOut]:
    job = yield from read(Send("POST", f"/v1/admin/{kind}", json_body(options), headers=JSON), JobOut)
    poll_s = FIRST_POLL_S
    while job.status == "running":
        if on_progress is not None:
            on_progress(job)
        yield Pause(poll_s)
        poll_s = min(2 * poll_s, LAST_POLL_S)
        job = yield from read(Send("GET", f"/v1/admin/{kind}/{job.job_id}"), JobOut)
    return job
