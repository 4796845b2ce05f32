"""The response cache: answers under row security by acl and conversation. Frozen, as every revision is."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TENANT = "tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid"
ACL = "(SELECT coalesce(nullif(current_setting('app.acl', true), ''), '{}')::text[])"
TABLES = ("cache_entries", "cache_ties")


def upgrade() -> None:
    limit_waiting()
    connection = op.get_bind()
    connection.exec_driver_sql(Path(__file__).with_name("0005_response_cache.sql").read_text())
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY worker_all ON {table} FOR ALL TO coatcheck_worker USING ({TENANT}) WITH CHECK ({TENANT})")
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO coatcheck_worker")
    of_session = (
        "(session_id IS NULL OR EXISTS (SELECT FROM sessions s"
        " WHERE s.tenant_id = cache_entries.tenant_id AND s.session_id = cache_entries.session_id))"
    )
    own = f"{ACL} @> ARRAY['p:' || principal_id::text]"
    op.execute(
        f"CREATE POLICY app_select ON cache_entries FOR SELECT TO coatcheck_app USING ({TENANT} AND acl && {ACL} AND {of_session})"
    )
    op.execute(
        "CREATE POLICY app_insert ON cache_entries FOR INSERT TO coatcheck_app WITH CHECK"
        f" ({TENANT} AND {own} AND cardinality(acl) = 1 AND acl <@ {ACL} AND {of_session})"
    )
    op.execute(
        f"CREATE POLICY app_insert ON cache_ties FOR INSERT TO coatcheck_app WITH CHECK ({TENANT} AND EXISTS"
        " (SELECT FROM cache_entries c WHERE c.tenant_id = cache_ties.tenant_id AND c.entry_id = cache_ties.entry_id"
        f" AND {ACL} @> ARRAY['p:' || c.principal_id::text]))"
    )
    op.execute("GRANT SELECT, INSERT ON cache_entries TO coatcheck_app")
    op.execute("GRANT INSERT ON cache_ties TO coatcheck_app")
    if connection.scalar(sa.text("SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'")):
        op.execute("ALTER TABLE cache_entries ALTER COLUMN answer SET COMPRESSION lz4")


def downgrade() -> None:
    limit_waiting()
    for table in reversed(TABLES):
        op.execute(f"DROP TABLE {table}")


def limit_waiting() -> None:
    """A migration that cannot have its lock soon gives up, instead of making every request queue behind it."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")
