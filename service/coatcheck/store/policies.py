"""Who may touch which row: the policies and grants as they should stand. A check compares a migrated database with them.

A policy's subquery is itself under the policies of the table it reads, so each level states only what it adds: a session is
readable by its acl while it is not erased; a run while its session is and it is not erased itself; an entry while its run
is; a segment or blob while some entry is that points at it; a reduction while its segment is; a cached answer by its own acl
while its conversation's session is. What a use case marks as
erased is therefore unreachable with that commit, before any row or point is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coatcheck.store.schema import APP_ROLE, WORKER_ROLE
from coatcheck.store.tables import metadata

WITHOUT_ROW_SECURITY = frozenset({"alembic_version", "tenants", "issuers", "generations", "root_keys"})
"""No tenant's content in any of them."""

TENANT = "tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid"
ACL = "(SELECT coalesce(nullif(current_setting('app.acl', true), ''), '{}')::text[])"


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy. ``using`` is for rows that exist, ``check`` for rows as they would become."""

    table: str
    name: str
    command: str
    role: str
    using: str | None
    check: str | None

    @property
    def statement(self) -> str:
        using = f" USING ({self.using})" if self.using else ""
        check = f" WITH CHECK ({self.check})" if self.check else ""
        return f"CREATE POLICY {self.name} ON {self.table} FOR {self.command} TO {self.role}{using}{check}"


@dataclass(frozen=True, slots=True)
class Grant:
    """What a role may do with a table at all."""

    table: str
    privileges: str
    role: str

    @property
    def statement(self) -> str:
        return f"GRANT {self.privileges} ON {self.table} TO {self.role}"


def tables_with_row_security() -> list[str]:
    """Every table that holds a tenant's rows, parents first."""
    return [table.name for table in metadata.sorted_tables if table.name not in WITHOUT_ROW_SECURITY]


def policies() -> list[Policy]:
    """All policies."""
    return [*(_of_worker(table) for table in tables_with_row_security()), *_of_app()]


def grants() -> list[Grant]:
    """All privileges on tables; the owner's own are not among them, and the login has none."""
    everything = "SELECT, INSERT, UPDATE, DELETE"
    return [
        *(Grant(table.name, everything, WORKER_ROLE) for table in metadata.sorted_tables),
        Grant("alembic_version", "SELECT", WORKER_ROLE),
        *(Grant(table, "SELECT", APP_ROLE) for table in ("principals", "teams", "memberships", "projections", "tombstones")),
        *(Grant(table, "INSERT", APP_ROLE) for table in ("outbox", "audit")),
        *(Grant(table, "SELECT, INSERT", APP_ROLE) for table in ("sessions", "runs", "segments", "reductions", "blobs", "entries")),
        Grant("stored_usage", "SELECT, INSERT", APP_ROLE),
        Grant("cache_entries", "SELECT, INSERT", APP_ROLE),
        Grant("cache_ties", "INSERT", APP_ROLE),
        Grant("runs", "UPDATE (lease_owner, lease_fence, lease_until)", APP_ROLE),
    ]


def statements() -> list[str]:
    """The SQL that puts all of it in force on freshly created tables, as their owner."""
    enable = [
        f"ALTER TABLE {table} {action} ROW LEVEL SECURITY" for table in tables_with_row_security() for action in ("ENABLE", "FORCE")
    ]
    return [*enable, *(policy.statement for policy in policies()), *(grant.statement for grant in grants())]


def _of_worker(table: str) -> Policy:
    return Policy(table, "worker_all", "ALL", WORKER_ROLE, TENANT, TENANT)


def _of_app() -> Iterator[Policy]:
    for table in ("principals", "teams", "memberships"):
        yield _reads(table, TENANT)
    yield _adds("audit", TENANT)
    yield _adds("outbox", f"{TENANT} AND {_writable_session('outbox')}")
    yield _reads("stored_usage", TENANT)
    yield _adds("stored_usage", TENANT)
    yield _reads("tombstones", f"{TENANT} AND acl && {ACL}")

    yield _reads("sessions", f"{TENANT} AND erased_at IS NULL AND acl && {ACL}")
    yield _adds("sessions", f"{TENANT} AND erased_at IS NULL AND writers && {ACL} AND {ACL} @> ARRAY['p:' || owner_id::text]")

    yield _reads("runs", f"{TENANT} AND erased_at IS NULL AND {_readable_session('runs')}")
    own_runs = f"{TENANT} AND erased_at IS NULL AND {_writable_session('runs')}"
    yield _adds("runs", own_runs)
    yield Policy("runs", "app_update", "UPDATE", APP_ROLE, own_runs, own_runs)

    for table in ("segments", "blobs"):
        pointer = "segment_sha256" if table == "segments" else "blob_sha256"
        yield _reads(table, f"{TENANT} AND {_readable_entry(table, pointer)}")
        yield _adds(table, f"{TENANT} AND {_writable_session(table)}")
    yield _reads("reductions", f"{TENANT} AND {_readable_segment('reductions', 'exact_sha256')}")
    yield _adds("reductions", f"{TENANT} AND {_writable_session('reductions')}")
    yield _reads("projections", f"{TENANT} AND {_readable_session('projections')}")
    # An answer goes with its conversation: what may not be read any more, or is erased, has none to give.
    of_session = f"(session_id IS NULL OR {_readable_session('cache_entries')})"
    own = f"{ACL} @> ARRAY['p:' || principal_id::text]"
    yield _reads("cache_entries", f"{TENANT} AND acl && {ACL} AND {of_session}")
    yield _adds("cache_entries", f"{TENANT} AND {own} AND cardinality(acl) = 1 AND acl <@ {ACL} AND {of_session}")
    yield _adds("cache_ties", f"{TENANT} AND {_own_cache_entry()}")
    yield _reads("entries", f"{TENANT} AND {_readable_run()}")
    yield _adds("entries", f"{TENANT} AND {_writable_run()}")


def _reads(table: str, condition: str) -> Policy:
    return Policy(table, "app_select", "SELECT", APP_ROLE, condition, None)


def _adds(table: str, condition: str) -> Policy:
    return Policy(table, "app_insert", "INSERT", APP_ROLE, None, condition)


def _readable_session(table: str) -> str:
    return f"EXISTS (SELECT FROM sessions s WHERE s.tenant_id = {table}.tenant_id AND s.session_id = {table}.session_id)"


def _writable_session(table: str) -> str:
    return (
        f"EXISTS (SELECT FROM sessions s WHERE s.tenant_id = {table}.tenant_id AND s.session_id = {table}.session_id"
        f" AND s.writers && {ACL})"
    )


def _readable_run() -> str:
    return "EXISTS (SELECT FROM runs r WHERE r.tenant_id = entries.tenant_id AND r.manifest_id = entries.manifest_id)"


def _writable_run() -> str:
    # The entry's session is the run's: no row of mine may stand in a manifest of yours.
    return (
        "EXISTS (SELECT FROM runs r JOIN sessions s ON s.tenant_id = r.tenant_id AND s.session_id = r.session_id"
        " WHERE r.tenant_id = entries.tenant_id AND r.manifest_id = entries.manifest_id AND r.session_id = entries.session_id"
        f" AND s.writers && {ACL})"
    )


def _readable_entry(table: str, pointer: str) -> str:
    return (
        f"EXISTS (SELECT FROM entries e WHERE e.tenant_id = {table}.tenant_id AND e.session_id = {table}.session_id"
        f" AND e.{pointer} = {table}.sha256)"
    )


def _own_cache_entry() -> str:
    return (
        "EXISTS (SELECT FROM cache_entries c WHERE c.tenant_id = cache_ties.tenant_id AND c.entry_id = cache_ties.entry_id"
        f" AND {ACL} @> ARRAY['p:' || c.principal_id::text])"
    )


def _readable_segment(table: str, pointer: str) -> str:
    return (
        f"EXISTS (SELECT FROM segments g WHERE g.tenant_id = {table}.tenant_id AND g.session_id = {table}.session_id"
        f" AND g.sha256 = {table}.{pointer})"
    )
