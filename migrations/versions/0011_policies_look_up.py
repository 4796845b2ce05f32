"""A policy's subquery looks one row up, instead of being planned twice: the same rows, a smaller plan.

PostgreSQL plans every EXISTS in a policy in two ways, and each level of nesting doubles that: a recall's question to its
candidates was planned with 82 subplans.
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TENANT = "tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid"
ACL = "(SELECT coalesce(nullif(current_setting('app.acl', true), ''), '{}')::text[])"


def upgrade() -> None:
    change("(SELECT true FROM ", " LIMIT 1)")


def downgrade() -> None:
    change("EXISTS (SELECT FROM ", ")")


def change(start: str, end: str) -> None:
    limit_waiting()

    def session(table: str, more: str = "") -> str:
        return f"{start}sessions s WHERE s.tenant_id = {table}.tenant_id AND s.session_id = {table}.session_id{more}{end}"

    def writable(table: str) -> str:
        return session(table, f" AND s.writers && {ACL}")

    def entry(table: str, pointer: str) -> str:
        return (
            f"{start}entries e WHERE e.tenant_id = {table}.tenant_id AND e.session_id = {table}.session_id"
            f" AND e.{pointer} = {table}.sha256{end}"
        )

    def may_read(table: str, condition: str) -> None:
        op.execute(f"ALTER POLICY app_select ON {table} USING ({TENANT} AND {condition})")

    def may_add(table: str, condition: str) -> None:
        op.execute(f"ALTER POLICY app_insert ON {table} WITH CHECK ({TENANT} AND {condition})")

    may_read("runs", f"erased_at IS NULL AND {session('runs')}")
    own_runs = f"{TENANT} AND erased_at IS NULL AND {writable('runs')}"
    may_add("runs", f"erased_at IS NULL AND {writable('runs')}")
    op.execute(f"ALTER POLICY app_update ON runs USING ({own_runs}) WITH CHECK ({own_runs})")
    for table, pointer in (("segments", "segment_sha256"), ("blobs", "blob_sha256")):
        may_read(table, entry(table, pointer))
    for table in ("segments", "blobs", "reductions", "outbox"):
        may_add(table, writable(table))
    may_read(
        "reductions",
        f"{start}segments g WHERE g.tenant_id = reductions.tenant_id AND g.session_id = reductions.session_id"
        f" AND g.sha256 = reductions.exact_sha256{end}",
    )
    may_read("projections", session("projections"))
    of_session = f"(session_id IS NULL OR {session('cache_entries')})"
    own = f"{ACL} @> ARRAY['p:' || principal_id::text]"
    may_read("cache_entries", f"acl && {ACL} AND {of_session}")
    may_add("cache_entries", f"{own} AND cardinality(acl) = 1 AND acl <@ {ACL} AND {of_session}")
    may_add(
        "cache_ties",
        f"{start}cache_entries c WHERE c.tenant_id = cache_ties.tenant_id AND c.entry_id = cache_ties.entry_id"
        f" AND {ACL} @> ARRAY['p:' || c.principal_id::text]{end}",
    )
    may_read("entries", f"{start}runs r WHERE r.tenant_id = entries.tenant_id AND r.manifest_id = entries.manifest_id{end}")
    may_add(
        "entries",
        f"{start}runs r JOIN sessions s ON s.tenant_id = r.tenant_id AND s.session_id = r.session_id"
        " WHERE r.tenant_id = entries.tenant_id AND r.manifest_id = entries.manifest_id AND r.session_id = entries.session_id"
        f" AND s.writers && {ACL}{end}",
    )


def limit_waiting() -> None:
    """A migration that cannot have its lock soon gives up, instead of making every request queue behind it."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")
