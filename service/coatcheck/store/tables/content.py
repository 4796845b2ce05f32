"""What was said: sessions, runs, segments and what hangs on them."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB

from coatcheck.store.tables.base import TIME, metadata, now, session_key

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("owner_id", sa.Uuid, nullable=False),
    sa.Column("visibility", sa.Text, nullable=False),
    sa.Column("participants", ARRAY(sa.Uuid), nullable=False, server_default="{}"),
    sa.Column("acl", ARRAY(sa.Text), nullable=False),
    sa.Column("writers", ARRAY(sa.Text), nullable=False),
    now("created_at"),
    sa.Column("erased_at", TIME),
    sa.Index(
        "uq_sessions_tenant_id_owner_id_name",
        "tenant_id",
        "owner_id",
        "name",
        unique=True,
        postgresql_where=sa.text("erased_at IS NULL"),
    ),
    sa.Index("ix_sessions_tenant_id_created_at_session_id", "tenant_id", "created_at", "session_id"),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("manifest_id", sa.Uuid, primary_key=True),
    sa.Column("session_id", sa.Uuid, nullable=False),
    sa.Column("principal_id", sa.Uuid, nullable=False),
    sa.Column("parent_manifest_id", sa.Uuid),
    sa.Column("idempotency_key", sa.Text, nullable=False),
    sa.Column("request_digest", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("lease_owner", sa.Text),
    sa.Column("lease_fence", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("lease_until", TIME),
    sa.Column("window_format", sa.Text, nullable=False),
    sa.Column("max_handoff_chars", sa.Integer, nullable=False),
    sa.Column("handoff_text", BYTEA, nullable=False),
    sa.Column("handoff_sha256", sa.Text, nullable=False),
    sa.Column("handoff", BYTEA, nullable=False),
    sa.Column("counts", JSONB, nullable=False),
    sa.Column("revisions", JSONB, nullable=False),
    sa.Column("warnings", JSONB, nullable=False),
    sa.Column("timings_ms", JSONB, nullable=False),
    sa.Column("passages", sa.Integer, nullable=False, server_default="0"),
    sa.Column("generation", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("acknowledged_at", TIME),
    sa.Column("erased_at", TIME),
    session_key(),
    sa.Index(
        "uq_runs_tenant_id_principal_id_session_id_idempotency_key",
        "tenant_id", "principal_id", "session_id", "idempotency_key",
        unique=True,
    ),
    sa.Index("ix_runs_tenant_id_session_id_created_at", "tenant_id", "session_id", "created_at"),
    sa.Index("ix_runs_tenant_id_session_id_handoff_sha256", "tenant_id", "session_id", "handoff_sha256"),
    sa.Index("ix_runs_tenant_id_lease_until", "tenant_id", "lease_until", postgresql_where=sa.text("lease_until IS NOT NULL")),
)  # fmt: skip

segments = sa.Table(
    "segments",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("sha256", sa.Text, primary_key=True),
    sa.Column("raw", BYTEA),
    sa.Column("chars", sa.Integer, nullable=False),
    sa.Column("rule_revision", sa.Text, nullable=False),
    now("stored_at"),
    session_key(),
    # Partial, so that only a search by prefix can choose it: by session and hash there is the primary key.
    sa.Index(
        "ix_segments_tenant_id_sha256",
        "tenant_id",
        "sha256",
        postgresql_ops={"sha256": "text_pattern_ops"},
        postgresql_where=sa.text("raw IS NOT NULL"),
    ),
)

reductions = sa.Table(
    "reductions",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("exact_sha256", sa.Text, primary_key=True),
    sa.Column("reducer_revision", sa.Text, primary_key=True),
    sa.Column("raw", BYTEA, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("verdicts", JSONB, nullable=False),
    now("stored_at"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "session_id", "exact_sha256"],
        ["segments.tenant_id", "segments.session_id", "segments.sha256"],
        ondelete="CASCADE",
    ),
)

blobs = sa.Table(
    "blobs",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("session_id", sa.Uuid, primary_key=True),
    sa.Column("sha256", sa.Text, primary_key=True),
    sa.Column("media_type", sa.Text),
    sa.Column("raw", BYTEA, nullable=False),
    now("stored_at"),
    session_key(),
)

entries = sa.Table(
    "entries",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("manifest_id", sa.Uuid, primary_key=True),
    sa.Column("ordinal", sa.Integer, primary_key=True),
    sa.Column("session_id", sa.Uuid, nullable=False),
    sa.Column("message_index", sa.Integer, nullable=False),
    sa.Column("part_index", sa.Integer, nullable=False),
    sa.Column("segment_index", sa.Integer, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("encoding", sa.Text, nullable=False),
    sa.Column("segment_sha256", sa.Text),
    sa.Column("blob_sha256", sa.Text),
    sa.Column("handoff_manifest_id", sa.Uuid),
    sa.Column("frame_before", BYTEA, nullable=False),
    sa.Column("frame_after", BYTEA, nullable=False),
    sa.Column("call_id", sa.Text),
    sa.Column("group_id", sa.Text),
    sa.Column("name", BYTEA),
    sa.Column("occurred_at", TIME),
    sa.Column("is_system_field", sa.Boolean, nullable=False),
    sa.Column("chars", sa.Integer, nullable=False),
    sa.Column("route", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("protection", sa.Text),
    sa.Column("scores", JSONB),
    sa.Column("dropped_sha256", sa.Text),
    sa.ForeignKeyConstraint(["tenant_id", "manifest_id"], ["runs.tenant_id", "runs.manifest_id"], ondelete="CASCADE"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "session_id", "segment_sha256"], ["segments.tenant_id", "segments.session_id", "segments.sha256"]
    ),
    sa.ForeignKeyConstraint(["tenant_id", "session_id", "blob_sha256"], ["blobs.tenant_id", "blobs.session_id", "blobs.sha256"]),
    sa.Index(
        "ix_entries_tenant_id_session_id_segment_sha256",
        "tenant_id",
        "session_id",
        "segment_sha256",
        postgresql_where=sa.text("segment_sha256 IS NOT NULL"),
    ),
    sa.Index(
        "ix_entries_tenant_id_session_id_blob_sha256",
        "tenant_id",
        "session_id",
        "blob_sha256",
        postgresql_where=sa.text("blob_sha256 IS NOT NULL"),
    ),
)
