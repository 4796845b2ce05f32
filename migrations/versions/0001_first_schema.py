"""The first schema: tables, row security, policies, grants. Frozen, as every revision is; the roles exist before it runs."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TENANT = "tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid"
ACL = "(SELECT coalesce(nullif(current_setting('app.acl', true), ''), '{}')::text[])"

TENANT_TABLES = (
    "principals", "teams", "memberships", "api_keys", "audit", "outbox", "tombstones",
    "sessions", "runs", "segments", "blobs", "entries", "projections", "reductions",
)  # fmt: skip
OPEN_TABLES = ("tenants", "issuers", "generations")

COMPRESSED = (
    ("runs", "handoff_text"),
    ("runs", "handoff"),
    ("segments", "raw"),
    ("reductions", "raw"),
    ("blobs", "raw"),
    ("entries", "frame_before"),
    ("entries", "frame_after"),
)


def upgrade() -> None:
    limit_waiting()
    connection = op.get_bind()
    connection.exec_driver_sql(Path(__file__).with_name("0001_tables.sql").read_text())
    for table in TENANT_TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY worker_all ON {table} FOR ALL TO coatcheck_worker USING ({TENANT}) WITH CHECK ({TENANT})")
    for table in (*TENANT_TABLES, *OPEN_TABLES):
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO coatcheck_worker")
    op.execute("GRANT SELECT ON alembic_version TO coatcheck_worker")
    policies_of_the_app()
    if connection.scalar(sa.text("SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'")):
        for table, column in COMPRESSED:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET COMPRESSION lz4")


def downgrade() -> None:
    limit_waiting()
    for table in reversed((*OPEN_TABLES, *TENANT_TABLES)):
        op.execute(f"DROP TABLE {table} CASCADE")
    op.execute("REVOKE ALL ON alembic_version FROM coatcheck_worker")


def limit_waiting() -> None:
    """A migration that cannot have its lock soon gives up, instead of making every request queue behind it."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")


def policies_of_the_app() -> None:
    """A subquery is itself under the policies of the table it reads, so each level states only what it adds."""
    for table in ("principals", "teams", "memberships"):
        may_read(table, TENANT)
    may_add("audit", TENANT)
    may_add("outbox", writable_session("outbox"))
    may_read("tombstones", f"{TENANT} AND acl && {ACL}")

    may_read("sessions", f"{TENANT} AND erased_at IS NULL AND acl && {ACL}")
    may_add("sessions", f"{TENANT} AND erased_at IS NULL AND writers && {ACL} AND {ACL} @> ARRAY['p:' || owner_id::text]")

    may_read(
        "runs",
        f"{TENANT} AND erased_at IS NULL AND EXISTS"
        " (SELECT FROM sessions s WHERE s.tenant_id = runs.tenant_id AND s.session_id = runs.session_id)",
    )
    own_runs = f"{TENANT} AND erased_at IS NULL AND {writable_session('runs').removeprefix(f'{TENANT} AND ')}"
    may_add("runs", own_runs)
    op.execute(f"CREATE POLICY app_update ON runs FOR UPDATE TO coatcheck_app USING ({own_runs}) WITH CHECK ({own_runs})")
    op.execute("GRANT UPDATE (lease_owner, lease_fence, lease_until) ON runs TO coatcheck_app")

    for table, pointer in (("segments", "segment_sha256"), ("blobs", "blob_sha256")):
        may_read(
            table,
            f"{TENANT} AND EXISTS (SELECT FROM entries e WHERE e.tenant_id = {table}.tenant_id"
            f" AND e.session_id = {table}.session_id AND e.{pointer} = {table}.sha256)",
        )
        may_add(table, writable_session(table))
    may_read(
        "reductions",
        f"{TENANT} AND EXISTS (SELECT FROM segments g WHERE g.tenant_id = reductions.tenant_id"
        " AND g.session_id = reductions.session_id AND g.sha256 = reductions.exact_sha256)",
    )
    may_add("reductions", writable_session("reductions"))
    may_read(
        "projections",
        f"{TENANT} AND EXISTS"
        " (SELECT FROM sessions s WHERE s.tenant_id = projections.tenant_id AND s.session_id = projections.session_id)",
    )
    may_read(
        "entries",
        f"{TENANT} AND EXISTS (SELECT FROM runs r WHERE r.tenant_id = entries.tenant_id AND r.manifest_id = entries.manifest_id)",
    )
    may_add(
        "entries",
        f"{TENANT} AND EXISTS (SELECT FROM runs r JOIN sessions s ON s.tenant_id = r.tenant_id AND s.session_id = r.session_id"
        " WHERE r.tenant_id = entries.tenant_id AND r.manifest_id = entries.manifest_id"
        f" AND r.session_id = entries.session_id AND s.writers && {ACL})",
    )


def may_read(table: str, condition: str) -> None:
    op.execute(f"CREATE POLICY app_select ON {table} FOR SELECT TO coatcheck_app USING ({condition})")
    op.execute(f"GRANT SELECT ON {table} TO coatcheck_app")


def may_add(table: str, condition: str) -> None:
    op.execute(f"CREATE POLICY app_insert ON {table} FOR INSERT TO coatcheck_app WITH CHECK ({condition})")
    op.execute(f"GRANT INSERT ON {table} TO coatcheck_app")


def writable_session(table: str) -> str:
    return (
        f"{TENANT} AND EXISTS (SELECT FROM sessions s WHERE s.tenant_id = {table}.tenant_id"
        f" AND s.session_id = {table}.session_id AND s.writers && {ACL})"
    )
