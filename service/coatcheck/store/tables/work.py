"""What the index owes and has, what was erased, and who did what."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from coatcheck.store.tables.base import TIME, metadata, now

projections = sa.Table(
    "projections",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("segment_sha256", sa.Text, primary_key=True),
    sa.Column("generation", sa.Integer, primary_key=True),
    sa.Column("passages", sa.Integer, nullable=False),
    sa.Column("content_version", sa.Text, nullable=False),
    sa.Column("context_manifest_id", sa.Uuid, nullable=False),
    sa.Column("context_ordinal", sa.Integer, nullable=False),
    now("projected_at"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "session_id", "segment_sha256"],
        ["segments.tenant_id", "segments.session_id", "segments.sha256"],
        ondelete="CASCADE",
    ),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("item_id", sa.Uuid, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("session_id", sa.Uuid, nullable=False),
    sa.Column("manifest_id", sa.Uuid),
    sa.Column("segment_sha256", sa.Text),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_attempt_at", TIME, nullable=False, server_default=sa.func.now()),
    sa.Column("lease_owner", sa.Text),
    sa.Column("lease_fence", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("lease_until", TIME),
    sa.Column("quarantined_at", TIME),
    sa.Column("last_error", sa.Text),
    now("created_at"),
    sa.Index("ix_outbox_tenant_id_next_attempt_at", "tenant_id", "next_attempt_at"),
    sa.Index("ix_outbox_tenant_id_manifest_id", "tenant_id", "manifest_id"),
    sa.Index("ix_outbox_tenant_id_session_id", "tenant_id", "session_id"),
)

tombstones = sa.Table(
    "tombstones",
    metadata,
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("session_id", sa.Uuid),
    sa.Column("manifest_id", sa.Uuid),
    sa.Column("acl", ARRAY(sa.Text), nullable=False),
    sa.Column("erased_at", TIME, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("audit_id", sa.Uuid, primary_key=True),
    sa.Column("principal_id", sa.Uuid),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("target_kind", sa.Text, nullable=False),
    sa.Column("target_id", sa.Text, nullable=False),
    now("occurred_at"),
    sa.Column("delegation_id", sa.Uuid),
)

generations = sa.Table(
    "generations",
    metadata,
    sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("embedder_revision", sa.Text, nullable=False),
    sa.Column("dimensions", sa.Integer, nullable=False),
    sa.Column("analyser_revision", sa.Text, nullable=False),
    sa.Column("fusion", JSONB, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    now("created_at"),
)
