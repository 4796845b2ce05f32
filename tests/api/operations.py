"""Every operation of the API, with the right it needs and a request that passes its checks: the table under the matrices.

A route that is not in it fails test_every_route.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from coatcheck.identity.operations import Operation

UNKNOWN = UUID("00000000-0000-7000-8000-00000000dead")
UNKNOWN_SHA = "dead" * 16


@dataclass(frozen=True, slots=True)
class Row:
    """One operation. ``path`` names nothing that exists; ``use_case`` is the one it reaches."""

    operation: Operation | None
    use_case: str
    path: str
    body: object | None = None
    names_something: bool = False
    """Whether the path holds an id, so that there is something to be unknown or foreign."""


WINDOW = {"session": str(UNKNOWN), "window": {"messages": [{"role": "user", "content": "x" * 2_000}]}}

PUBLIC = {("GET", "/livez"), ("GET", "/readyz"), ("GET", "/progressz"), ("GET", "/metrics")}

EVERY_OPERATION: dict[tuple[str, str], Row] = {
    ("POST", "/v1/compactions"): Row(Operation.COMPACT, "compact", "/v1/compactions", WINDOW, names_something=True),
    ("POST", "/v1/recall"): Row(
        Operation.RECALL, "recall", "/v1/recall", {"query": "q", "session": str(UNKNOWN)}, names_something=True
    ),
    ("GET", "/v1/manifests/{manifest_id}"): Row(Operation.READ, "manifest", f"/v1/manifests/{UNKNOWN}", names_something=True),
    ("GET", "/v1/manifests/{manifest_id}/entries"): Row(
        Operation.READ, "entries", f"/v1/manifests/{UNKNOWN}/entries", names_something=True
    ),
    ("GET", "/v1/manifests/{manifest_id}/window"): Row(
        Operation.READ, "window", f"/v1/manifests/{UNKNOWN}/window", names_something=True
    ),
    ("DELETE", "/v1/manifests/{manifest_id}"): Row(
        Operation.ERASE, "erase_manifest", f"/v1/manifests/{UNKNOWN}", names_something=True
    ),
    ("GET", "/v1/segments/{sha256}"): Row(Operation.READ, "segment", f"/v1/segments/{UNKNOWN_SHA}", names_something=True),
    ("GET", "/v1/sessions"): Row(Operation.SESSIONS, "sessions", "/v1/sessions"),
    ("GET", "/v1/sessions/{session_id}"): Row(Operation.SESSIONS, "session", f"/v1/sessions/{UNKNOWN}", names_something=True),
    ("PATCH", "/v1/sessions/{session_id}"): Row(
        Operation.SESSIONS, "patch_session", f"/v1/sessions/{UNKNOWN}", {"visibility": "personal"}, names_something=True
    ),
    ("DELETE", "/v1/sessions/{session_id}"): Row(Operation.ERASE, "erase_session", f"/v1/sessions/{UNKNOWN}", names_something=True),
    ("GET", "/v1/sessions/{session_id}/export"): Row(
        Operation.EXPORT, "export_session", f"/v1/sessions/{UNKNOWN}/export", names_something=True
    ),
    ("POST", "/v1/import"): Row(Operation.IMPORT, "import_lines", "/v1/import", {}),
    ("POST", "/v1/admin/scan"): Row(Operation.SCAN, "start_job", "/v1/admin/scan", {"index": False}),
    ("GET", "/v1/admin/scan/{job_id}"): Row(Operation.SCAN, "job", f"/v1/admin/scan/{UNKNOWN}", names_something=True),
    ("POST", "/v1/admin/repair"): Row(Operation.REPAIR, "start_job", "/v1/admin/repair"),
    ("GET", "/v1/admin/repair/{job_id}"): Row(Operation.REPAIR, "job", f"/v1/admin/repair/{UNKNOWN}", names_something=True),
    ("POST", "/v1/admin/reconcile"): Row(Operation.RECONCILE, "start_job", "/v1/admin/reconcile"),
    ("GET", "/v1/admin/reconcile/{job_id}"): Row(
        Operation.RECONCILE, "job", f"/v1/admin/reconcile/{UNKNOWN}", names_something=True
    ),
    ("POST", "/v1/admin/redact-rescan"): Row(Operation.REDACT, "start_job", "/v1/admin/redact-rescan"),
    ("GET", "/v1/admin/redact-rescan/{job_id}"): Row(
        Operation.REDACT, "job", f"/v1/admin/redact-rescan/{UNKNOWN}", names_something=True
    ),
    ("GET", "/v1/admin/keys"): Row(Operation.KEYS, "keys", "/v1/admin/keys"),
    ("POST", "/v1/admin/keys"): Row(Operation.KEYS, "create_key", "/v1/admin/keys", {"name": "n"}),
    ("POST", "/v1/admin/keys/{key_id}/rotate"): Row(
        Operation.KEYS, "rotate_key", f"/v1/admin/keys/{UNKNOWN}/rotate", names_something=True
    ),
    ("DELETE", "/v1/admin/keys/{key_id}"): Row(Operation.KEYS, "revoke_key", f"/v1/admin/keys/{UNKNOWN}", names_something=True),
    ("GET", "/v1/admin/tenants"): Row(Operation.TENANTS, "tenants", "/v1/admin/tenants"),
    ("POST", "/v1/admin/tenants"): Row(Operation.TENANTS, "create_tenant", "/v1/admin/tenants", {"name": "n"}),
}
