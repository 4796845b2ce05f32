"""The tables. Every key of a tenant's table begins with ``tenant_id``; policies stand in ``policies``."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

TIME = sa.TIMESTAMP(timezone=True)


def _now(name: str) -> sa.Column[object]:
    return sa.Column(name, TIME, nullable=False, server_default=sa.func.now())


def _session_key(*, on_delete: str = "CASCADE") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["tenant_id", "session_id"], ["sessions.tenant_id", "sessions.session_id"], ondelete=on_delete)


# --- who exists. tenants and issuers have no RLS, and no content.

tenants = sa.Table(
    "tenants",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("status", sa.Text, nullable=False, server_default="active"),
    sa.Column("key_fingerprint", sa.Text, nullable=False),
    sa.Column("permission_revision", sa.BigInteger, nullable=False, server_default="0"),
    _now("created_at"),
)

issuers = sa.Table(
    "issuers",
    metadata,
    sa.Column("issuer", sa.Text, primary_key=True),
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), nullable=False),
    sa.Column("jwks_uri", sa.Text, nullable=False),
    sa.Column("audience", sa.Text, nullable=False),
    _now("created_at"),
)

principals = sa.Table(
    "principals",
    metadata,
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("principal_id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("subject", sa.Text),
    sa.Column("status", sa.Text, nullable=False, server_default="active"),
    _now("created_at"),
    sa.UniqueConstraint("tenant_id", "subject"),
)

teams = sa.Table(
    "teams",
    metadata,
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("team_id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    _now("created_at"),
)

memberships = sa.Table(
    "memberships",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("principal_id", sa.Uuid, primary_key=True),
    sa.Column("team_id", sa.Uuid, primary_key=True),
    sa.Column("role", sa.Text, nullable=False, server_default="member"),
    _now("created_at"),
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
    _now("created_at"),
    sa.Column("expires_at", TIME),
    sa.Column("revoked_at", TIME),
    sa.ForeignKeyConstraint(["tenant_id", "principal_id"], ["principals.tenant_id", "principals.principal_id"], ondelete="CASCADE"),
)

# --- what was said

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
    _now("created_at"),
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
    _session_key(),
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
    _now("stored_at"),
    _session_key(),
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
    _now("stored_at"),
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
    _now("stored_at"),
    _session_key(),
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

# --- what the index owes and has

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
    _now("projected_at"),
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
    _now("created_at"),
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
    _now("occurred_at"),
)

# --- the index's generations: no tenant, no content, and so no RLS

generations = sa.Table(
    "generations",
    metadata,
    sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("embedder_revision", sa.Text, nullable=False),
    sa.Column("dimensions", sa.Integer, nullable=False),
    sa.Column("analyser_revision", sa.Text, nullable=False),
    sa.Column("fusion", JSONB, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    _now("created_at"),
)
