"""Every operation of the API with the right it needs and the ids it names: the table under the matrices.

A route that is not in it fails tests/isolation/test_matrix.py, which says what to add.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID

import httpx

from coatcheck.identity.operations import Operation
from tests.caching import circumstances
from tests.windows import request

UNKNOWN = UUID("01932dea-0000-7000-8000-00000000dead")


@dataclass(frozen=True, slots=True)
class Ids:
    """What an operation can name. By default nothing that exists."""

    session: UUID = UNKNOWN
    manifest: UUID = UNKNOWN
    sha256: str = "dead" * 16
    key: UUID = UNKNOWN
    principal: UUID = UNKNOWN
    team: UUID = UNKNOWN
    issuer: str = "https://nobody.example/"
    delegation: UUID = UNKNOWN
    scan: UUID = UNKNOWN
    repair: UUID = UNKNOWN
    reconcile: UUID = UNKNOWN
    rescan: UUID = UNKNOWN
    tenant: UUID = UNKNOWN
    erasure: UUID = UNKNOWN


NOTHING = Ids()


@dataclass(frozen=True, slots=True)
class Row:
    """One operation."""

    operation: Operation
    path: str
    """With the names of ``Ids`` in braces where it holds an id."""
    body: dict[str, object] | None = None
    session_in_body: bool = False
    ids_in_body: dict[str, str] | None = None
    """Fields of the body that name something, with the names of ``Ids``."""
    status: int = 200
    """What its holder is answered who may do it."""
    lines: str | None = None
    """A body that is no JSON document."""

    @property
    def names_something(self) -> bool:
        return "{" in self.path or self.session_in_body or self.ids_in_body is not None

    @property
    def names_a_session(self) -> bool:
        """Whether what it names belongs to a session, and so to those who may read that."""
        return self.session_in_body or any(name in self.path for name in ("{session}", "{manifest}", "{sha256}"))

    def request(self, ids: Ids) -> tuple[str, dict[str, object] | None]:
        """Path and body with these ids."""
        path = self.path.format(**{name: getattr(ids, name) for name in Ids.__slots__})
        named = {field: str(getattr(ids, name)) for field, name in (self.ids_in_body or {}).items()}
        if self.session_in_body:
            named["session"] = str(ids.session)
        return path, {**(self.body or {}), **named} if named else self.body

    async def send(
        self,
        http: httpx.AsyncClient,
        method: str,
        ids: Ids,
        headers: dict[str, str],
        *,
        query: str = "",
        more: dict[str, str] | None = None,
    ) -> httpx.Response:
        """The request as it stands in the table, with more in its query and in its body where a test says so."""
        path, body = self.request(ids)
        if query:
            path += ("&" if "?" in path else "?") + query
        content = self.lines if body is None or self.lines else json.dumps({**body, **(more or {})})
        if body is None and more is not None and self.lines is None:
            content = json.dumps(more)
        return await http.request(method, path, content=content, headers=headers)


EXPORTED = (
    f'{{"type": "session", "version": 1, "session_id": "{UNKNOWN}", "name": "taken in", "visibility": "conversation",'
    ' "created_at": "2026-11-29T20:15:00Z"}\n'
)
"""An export without a run, which stores nothing."""

RECEIPT: dict[str, object] = {
    "erasure_id": str(UNKNOWN), "tenant_id": str(UNKNOWN), "kind": "session", "target_id": str(UNKNOWN), "session_id": None,
    "reason": "request", "requested_by": None, "requested_at": "2026-11-29T20:15:00Z", "completed_at": None, "status": "pending",
    "counts": {}, "journal_mac": None, "key_version": 1, "tag": "0" * 64,
}  # fmt: skip
"""A receipt that nobody gave out."""

PUBLIC = {("GET", "/livez"), ("GET", "/readyz"), ("GET", "/progressz"), ("GET", "/metrics")}

LIMITS = "/v1/admin/tenants/{tenant}/limits"

EVERY_OPERATION: dict[tuple[str, str], Row] = {
    ("POST", "/v1/compactions"): Row(Operation.COMPACT, "/v1/compactions", request("s"), session_in_body=True, status=201),
    ("POST", "/v1/recall"): Row(Operation.RECALL, "/v1/recall", {"query": "pool exhausted"}, session_in_body=True),
    ("GET", "/v1/manifests/{manifest_id}"): Row(Operation.READ, "/v1/manifests/{manifest}"),
    ("GET", "/v1/manifests/{manifest_id}/entries"): Row(Operation.READ, "/v1/manifests/{manifest}/entries?text=true"),
    ("GET", "/v1/manifests/{manifest_id}/window"): Row(Operation.READ, "/v1/manifests/{manifest}/window"),
    ("DELETE", "/v1/manifests/{manifest_id}"): Row(Operation.ERASE, "/v1/manifests/{manifest}", status=204),
    ("GET", "/v1/erasures/{erasure_id}"): Row(Operation.ERASE, "/v1/erasures/{erasure}"),
    ("POST", "/v1/erasures/verify"): Row(Operation.ERASE, "/v1/erasures/verify", RECEIPT),
    ("GET", "/v1/segments/{sha256}"): Row(Operation.READ, "/v1/segments/{sha256}"),
    ("GET", "/v1/sessions"): Row(Operation.SESSIONS, "/v1/sessions"),
    ("GET", "/v1/sessions/{session_id}"): Row(Operation.SESSIONS, "/v1/sessions/{session}"),
    ("PATCH", "/v1/sessions/{session_id}"): Row(Operation.SESSIONS, "/v1/sessions/{session}", {"visibility": "personal"}),
    ("DELETE", "/v1/sessions/{session_id}"): Row(Operation.ERASE, "/v1/sessions/{session}", status=204),
    ("GET", "/v1/sessions/{session_id}/export"): Row(Operation.EXPORT, "/v1/sessions/{session}/export"),
    ("POST", "/v1/import"): Row(Operation.IMPORT, "/v1/import", lines=EXPORTED),
    ("POST", "/v1/admin/scan"): Row(Operation.SCAN, "/v1/admin/scan", {"index": False}, status=202),
    ("GET", "/v1/admin/scan/{job_id}"): Row(Operation.SCAN, "/v1/admin/scan/{scan}"),
    ("POST", "/v1/admin/repair"): Row(Operation.REPAIR, "/v1/admin/repair", status=202),
    ("GET", "/v1/admin/repair/{job_id}"): Row(Operation.REPAIR, "/v1/admin/repair/{repair}"),
    ("POST", "/v1/admin/reconcile"): Row(Operation.RECONCILE, "/v1/admin/reconcile", status=202),
    ("GET", "/v1/admin/reconcile/{job_id}"): Row(Operation.RECONCILE, "/v1/admin/reconcile/{reconcile}"),
    ("POST", "/v1/admin/redact-rescan"): Row(Operation.REDACT, "/v1/admin/redact-rescan", status=202),
    ("GET", "/v1/admin/redact-rescan/{job_id}"): Row(Operation.REDACT, "/v1/admin/redact-rescan/{rescan}"),
    ("GET", "/v1/admin/keys"): Row(Operation.KEYS, "/v1/admin/keys"),
    ("POST", "/v1/admin/keys"): Row(Operation.KEYS, "/v1/admin/keys", {"name": "n"}, status=201),
    ("POST", "/v1/admin/keys/{key_id}/rotate"): Row(Operation.KEYS, "/v1/admin/keys/{key}/rotate", status=201),
    ("DELETE", "/v1/admin/keys/{key_id}"): Row(Operation.KEYS, "/v1/admin/keys/{key}", status=204),
    ("GET", "/v1/delegations"): Row(Operation.DELEGATE, "/v1/delegations"),
    ("POST", "/v1/delegations"): Row(
        Operation.DELEGATE, "/v1/delegations", {"name": "n", "audience": ["api"], "operations": ["delegate"]}, status=201
    ),
    ("DELETE", "/v1/delegations/{delegation_id}"): Row(Operation.DELEGATE, "/v1/delegations/{delegation}", status=204),
    ("GET", "/v1/admin/issuers"): Row(Operation.TENANTS, "/v1/admin/issuers"),
    ("POST", "/v1/admin/issuers"): Row(
        Operation.TENANTS,
        "/v1/admin/issuers",
        {"issuer": f"https://{UNKNOWN}.example/", "jwks_uri": "https://keys.example/jwks", "audience": "coatcheck"},
        status=201,
    ),
    ("DELETE", "/v1/admin/issuers"): Row(Operation.TENANTS, "/v1/admin/issuers?issuer={issuer}", status=204),
    ("GET", "/v1/admin/audit"): Row(Operation.AUDIT, "/v1/admin/audit"),
    ("GET", "/v1/admin/principals"): Row(Operation.PRINCIPALS, "/v1/admin/principals"),
    ("POST", "/v1/admin/principals"): Row(Operation.PRINCIPALS, "/v1/admin/principals", {"name": "n"}, status=201),
    ("GET", "/v1/admin/principals/{principal_id}"): Row(Operation.PRINCIPALS, "/v1/admin/principals/{principal}"),
    ("PATCH", "/v1/admin/principals/{principal_id}"): Row(
        Operation.PRINCIPALS, "/v1/admin/principals/{principal}", {"name": "renamed"}
    ),
    ("GET", "/v1/admin/teams"): Row(Operation.PRINCIPALS, "/v1/admin/teams"),
    ("POST", "/v1/admin/teams"): Row(Operation.PRINCIPALS, "/v1/admin/teams", {"name": "n"}, status=201),
    ("DELETE", "/v1/admin/teams/{team_id}"): Row(Operation.PRINCIPALS, "/v1/admin/teams/{team}", status=204),
    ("GET", "/v1/admin/memberships"): Row(Operation.PRINCIPALS, "/v1/admin/memberships"),
    ("POST", "/v1/admin/memberships"): Row(
        Operation.PRINCIPALS, "/v1/admin/memberships", ids_in_body={"team_id": "team", "principal_id": "principal"}, status=201
    ),
    ("DELETE", "/v1/admin/memberships/{team_id}/{principal_id}"): Row(
        Operation.PRINCIPALS, "/v1/admin/memberships/{team}/{principal}", status=204
    ),
    ("GET", "/v1/admin/tenants"): Row(Operation.TENANTS, "/v1/admin/tenants"),
    ("POST", "/v1/admin/tenants"): Row(Operation.TENANTS, "/v1/admin/tenants", {"name": "n"}, status=201),
    ("GET", "/v1/admin/retention"): Row(Operation.RETENTION, "/v1/admin/retention"),
    ("PUT", "/v1/admin/retention"): Row(Operation.RETENTION, "/v1/admin/retention", {}),
    ("DELETE", "/v1/admin/tenants/{tenant_id}"): Row(Operation.TENANTS, "/v1/admin/tenants/{tenant}"),
    ("GET", "/v1/admin/tenants/{tenant_id}/limits"): Row(Operation.TENANTS, LIMITS),
    ("PUT", "/v1/admin/tenants/{tenant_id}/limits"): Row(Operation.TENANTS, LIMITS, {}),
    ("POST", "/v1/cache/lookup"): Row(Operation.CACHE, "/v1/cache/lookup", circumstances(), session_in_body=True),
    ("POST", "/v1/cache/store"): Row(
        Operation.CACHE, "/v1/cache/store", {**circumstances(), "answer": "a", "scope": "0" * 64}, session_in_body=True
    ),
    ("GET", "/v1/cache"): Row(Operation.CACHE, "/v1/cache"),
    ("POST", "/v1/cache/purge"): Row(Operation.CACHE, "/v1/cache/purge", {}, session_in_body=True),
}
