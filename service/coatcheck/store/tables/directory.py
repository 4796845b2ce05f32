"""Who exists: tenants and issuers, which have no row security and no content; principals, teams, keys, delegations."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA

from coatcheck.store.tables.base import TIME, metadata, now

tenants = sa.Table(
    "tenants",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("status", sa.Text, nullable=False, server_default="active"),
    sa.Column("key_fingerprint", sa.Text, nullable=False),
    sa.Column("permission_revision", sa.BigInteger, nullable=False, server_default="0"),
    now("created_at"),
    sa.Column("erasure_tenant_id", sa.Uuid),
    sa.Column("erasure_id", sa.Uuid),
)

issuers = sa.Table(
    "issuers",
    metadata,
    sa.Column("issuer", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), nullable=False),
    sa.Column("jwks_uri", sa.Text, nullable=False),
    sa.Column("audience", sa.Text, nullable=False),
    now("created_at"),
)

principals = sa.Table(
    "principals",
    metadata,
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("principal_id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("subject", sa.Text),
    sa.Column("status", sa.Text, nullable=False, server_default="active"),
    now("created_at"),
    sa.Column("role", sa.Text, nullable=False, server_default="member"),
    sa.Column("issuer", sa.Text),
    sa.Column("permission_revision", sa.BigInteger, nullable=False, server_default="0"),
    sa.UniqueConstraint("tenant_id", "issuer", "subject"),
    sa.CheckConstraint("role IN ('member', 'operator')", name="role"),
    sa.CheckConstraint("(issuer IS NULL) = (subject IS NULL)", name="subject"),
)

teams = sa.Table(
    "teams",
    metadata,
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("team_id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    now("created_at"),
)

memberships = sa.Table(
    "memberships",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("principal_id", sa.Uuid, primary_key=True),
    sa.Column("team_id", sa.Uuid, primary_key=True),
    sa.Column("role", sa.Text, nullable=False, server_default="member"),
    now("created_at"),
    sa.ForeignKeyConstraint(["tenant_id", "principal_id"], ["principals.tenant_id", "principals.principal_id"], ondelete="CASCADE"),
    sa.ForeignKeyConstraint(["tenant_id", "team_id"], ["teams.tenant_id", "teams.team_id"], ondelete="CASCADE"),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("key_id", sa.Uuid, primary_key=True),
    sa.Column("principal_id", sa.Uuid, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("secret_hash", BYTEA, nullable=False),
    sa.Column("key_version", sa.Integer, nullable=False, server_default="1"),
    sa.Column("operations", ARRAY(sa.Text), nullable=False),
    sa.Column("sessions", ARRAY(sa.Uuid)),
    now("created_at"),
    sa.Column("expires_at", TIME),
    sa.Column("revoked_at", TIME),
    sa.ForeignKeyConstraint(["tenant_id", "principal_id"], ["principals.tenant_id", "principals.principal_id"], ondelete="CASCADE"),
)

delegations = sa.Table(
    "delegations",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("delegation_id", sa.Uuid, primary_key=True),
    sa.Column("principal_id", sa.Uuid, nullable=False),
    sa.Column("parent_key_id", sa.Uuid),
    sa.Column("parent_delegation_id", sa.Uuid),
    sa.Column("parent_issuer", sa.Text),
    sa.Column("depth", sa.Integer, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("secret_hash", BYTEA, nullable=False),
    sa.Column("key_version", sa.Integer, nullable=False, server_default="1"),
    sa.Column("operations", ARRAY(sa.Text), nullable=False),
    sa.Column("sessions", ARRAY(sa.Uuid)),
    sa.Column("audience", ARRAY(sa.Text), nullable=False),
    now("created_at"),
    sa.Column("expires_at", TIME, nullable=False),
    sa.Column("revoked_at", TIME),
    sa.ForeignKeyConstraint(["tenant_id", "principal_id"], ["principals.tenant_id", "principals.principal_id"], ondelete="CASCADE"),
    sa.ForeignKeyConstraint(["tenant_id", "parent_key_id"], ["api_keys.tenant_id", "api_keys.key_id"], ondelete="CASCADE"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "parent_delegation_id"], ["delegations.tenant_id", "delegations.delegation_id"], ondelete="CASCADE"
    ),
    sa.CheckConstraint("num_nonnulls(parent_key_id, parent_delegation_id, parent_issuer) = 1", name="one_parent"),
    sa.Index("ix_delegations_tenant_id_principal_id", "tenant_id", "principal_id"),
)
