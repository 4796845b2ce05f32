"""What one tenant may take and for how long it is kept: limits, a ledger of what is stored, receipts, retention, root keys."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0001"
branch_labels = None
depends_on = None

TENANT = "tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid"
TENANT_TABLES = ("tenant_limits", "stored_usage", "erasures", "retention")
COUNTED = ("segments", "blobs")


def upgrade() -> None:
    limit_waiting()
    connection = op.get_bind()
    connection.exec_driver_sql(Path(__file__).with_name("0004_tables.sql").read_text())
    count_what_is_stored()
    for table in TENANT_TABLES:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY worker_all ON {table} FOR ALL TO coatcheck_worker USING ({TENANT}) WITH CHECK ({TENANT})")
    for table in (*TENANT_TABLES, "root_keys"):
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO coatcheck_worker")
    op.execute(f"CREATE POLICY app_select ON stored_usage FOR SELECT TO coatcheck_app USING ({TENANT})")
    op.execute(f"CREATE POLICY app_insert ON stored_usage FOR INSERT TO coatcheck_app WITH CHECK ({TENANT})")
    op.execute("GRANT SELECT, INSERT ON stored_usage TO coatcheck_app")


def downgrade() -> None:
    limit_waiting()
    for table in COUNTED:
        for event in ("insert", "update", "delete"):
            op.execute(f"DROP TRIGGER count_{event} ON {table}")
    op.execute("DROP FUNCTION count_stored()")
    for table in (*TENANT_TABLES, "root_keys"):
        op.execute(f"DROP TABLE {table} CASCADE")
    op.execute("ALTER TABLE tenants DROP COLUMN erasure_tenant_id, DROP COLUMN erasure_id")


def count_what_is_stored() -> None:
    """What stands already goes into the ledger. Row security is forced on the owner too: lifted for the one statement."""
    for table in COUNTED:
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        op.execute(
            "INSERT INTO stored_usage (tenant_id, segments, bytes)"
            f" SELECT tenant_id, {'count(*)' if table == 'segments' else 0}, coalesce(sum(octet_length(raw)), 0)"
            f" FROM {table} GROUP BY tenant_id"
        )
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


def limit_waiting() -> None:
    """A migration that cannot have its lock soon gives up, instead of making every request queue behind it."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")
