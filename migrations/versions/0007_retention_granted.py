"""A key that grants all there was for an operator grants the operation of retention as well."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

OPERATORS = "ARRAY['compact', 'recall', 'read', 'sessions', 'erase', 'import', 'keys', 'scan', 'repair', 'reconcile', 'redact']"


def upgrade() -> None:
    limit_waiting()
    op.execute("ALTER TABLE api_keys NO FORCE ROW LEVEL SECURITY")
    op.execute(
        "UPDATE api_keys SET operations = ARRAY(SELECT DISTINCT unnest(operations || ARRAY['retention']) ORDER BY 1)"
        f" WHERE operations @> {OPERATORS}"
    )
    op.execute("ALTER TABLE api_keys FORCE ROW LEVEL SECURITY")


def downgrade() -> None:
    limit_waiting()
    op.execute("ALTER TABLE api_keys NO FORCE ROW LEVEL SECURITY")
    op.execute("UPDATE api_keys SET operations = array_remove(operations, 'retention') WHERE 'retention' = ANY (operations)")
    op.execute("ALTER TABLE api_keys FORCE ROW LEVEL SECURITY")


def limit_waiting() -> None:
    """A migration that cannot have its lock soon gives up, instead of making every request queue behind it."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")
