"""Roles of principals, whose subject a token names, and delegated credentials."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TENANT = "tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid"
MEMBERS = "ARRAY['compact', 'recall', 'read', 'sessions', 'erase', 'publish', 'export']"
OPERATORS = "ARRAY['import', 'keys', 'scan', 'repair', 'reconcile', 'redact']"
NEW_OF_MEMBERS = "ARRAY['cache', 'delegate']"
NEW_OF_OPERATORS = "ARRAY['cache:publish', 'principals', 'audit']"
TIME = sa.TIMESTAMP(timezone=True)


def upgrade() -> None:
    limit_waiting()
    op.add_column("principals", sa.Column("role", sa.Text, nullable=False, server_default="member"))
    op.add_column("principals", sa.Column("issuer", sa.Text))
    keep_what_keys_grant()
    op.drop_constraint("uq_principals_tenant_id_subject", "principals")
    op.create_unique_constraint("uq_principals_tenant_id_issuer_subject", "principals", ["tenant_id", "issuer", "subject"])
    op.create_check_constraint(op.f("ck_principals_role"), "principals", "role IN ('member', 'operator')")
    op.create_check_constraint(op.f("ck_principals_subject"), "principals", "(issuer IS NULL) = (subject IS NULL)")
    op.create_table(
        "delegations",
        sa.Column("tenant_id", sa.Uuid, primary_key=True),
        sa.Column("delegation_id", sa.Uuid, primary_key=True),
        sa.Column("principal_id", sa.Uuid, nullable=False),
        sa.Column("parent_key_id", sa.Uuid),
        sa.Column("parent_delegation_id", sa.Uuid),
        sa.Column("parent_issuer", sa.Text),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("secret_hash", postgresql.BYTEA, nullable=False),
        sa.Column("key_version", sa.Integer, nullable=False, server_default="1"),
        sa.Column("operations", postgresql.ARRAY(sa.Text), nullable=False),
        sa.Column("sessions", postgresql.ARRAY(sa.Uuid)),
        sa.Column("audience", postgresql.ARRAY(sa.Text), nullable=False),
        sa.Column("created_at", TIME, nullable=False, server_default=sa.func.now()),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME),
        sa.PrimaryKeyConstraint("tenant_id", "delegation_id", name="pk_delegations"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "principal_id"], ["principals.tenant_id", "principals.principal_id"], ondelete="CASCADE",
            name="fk_delegations_tenant_id_principal_id",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "parent_key_id"], ["api_keys.tenant_id", "api_keys.key_id"], ondelete="CASCADE",
            name="fk_delegations_tenant_id_parent_key_id",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "parent_delegation_id"], ["delegations.tenant_id", "delegations.delegation_id"], ondelete="CASCADE",
            name="fk_delegations_tenant_id_parent_delegation_id",
        ),
        sa.CheckConstraint(
            "num_nonnulls(parent_key_id, parent_delegation_id, parent_issuer) = 1", name=op.f("ck_delegations_one_parent")
        ),
    )  # fmt: skip
    op.create_index("ix_delegations_tenant_id_principal_id", "delegations", ["tenant_id", "principal_id"])
    op.execute("ALTER TABLE delegations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY worker_all ON delegations FOR ALL TO coatcheck_worker USING ({TENANT}) WITH CHECK ({TENANT})")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON delegations TO coatcheck_worker")


def downgrade() -> None:
    limit_waiting()
    op.drop_table("delegations")
    op.drop_constraint(op.f("ck_principals_subject"), "principals")
    op.drop_constraint(op.f("ck_principals_role"), "principals")
    op.drop_constraint("uq_principals_tenant_id_issuer_subject", "principals")
    op.drop_column("principals", "issuer")
    op.drop_column("principals", "role")
    op.create_unique_constraint("uq_principals_tenant_id_subject", "principals", ["tenant_id", "subject"])


def keep_what_keys_grant() -> None:
    """A role is the most that a principal may do: whoever holds a key that grants more than a member's becomes an operator.

    A key that granted all there was for a member, or for an operator, grants what has come since as well.
    """
    for table in ("principals", "api_keys"):
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    # Nothing has set a subject yet, and one without its issuer names nobody.
    op.execute("UPDATE principals SET subject = NULL WHERE subject IS NOT NULL")
    op.execute(
        "UPDATE principals p SET role = 'operator' WHERE EXISTS (SELECT FROM api_keys k WHERE k.tenant_id = p.tenant_id"
        f" AND k.principal_id = p.principal_id AND NOT k.operations <@ ({MEMBERS} || {NEW_OF_MEMBERS}))"
    )
    for granted, new in ((MEMBERS, NEW_OF_MEMBERS), (f"({MEMBERS} || {OPERATORS})", NEW_OF_OPERATORS)):
        op.execute(
            f"UPDATE api_keys SET operations = ARRAY(SELECT DISTINCT unnest(operations || {new}) ORDER BY 1)"
            f" WHERE operations @> {granted}"
        )
    for table in ("principals", "api_keys"):
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")


def limit_waiting() -> None:
    """A migration that cannot have its lock soon gives up, instead of making every request queue behind it."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")
