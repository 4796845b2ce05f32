"""Answers that may be reused, and what each of them rests on."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA

from coatcheck.store.tables.base import TIME, metadata, session_key

cache_entries = sa.Table(
    "cache_entries",
    metadata,
    sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("entry_id", sa.Uuid, primary_key=True),
    sa.Column("principal_id", sa.Uuid, nullable=False),
    sa.Column("acl", ARRAY(sa.Text), nullable=False),
    sa.Column("session_id", sa.Uuid),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("sharing", sa.Text, nullable=False),
    sa.Column("conversation", sa.Text, nullable=False),
    sa.Column("permission", sa.Text, nullable=False),
    sa.Column("sources", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("instructions", sa.Text, nullable=False),
    sa.Column("tools", sa.Text, nullable=False),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("schema", sa.Text, nullable=False),
    sa.Column("prompt", sa.Text, nullable=False),
    sa.Column("frame", sa.Text),
    sa.Column("guard", sa.Text),
    sa.Column("embedder", sa.Text),
    sa.Column("embedding", BYTEA),
    sa.Column("answer", BYTEA, nullable=False),
    sa.Column("created_at", TIME, nullable=False),
    sa.Column("expires_at", TIME, nullable=False),
    session_key(),
    sa.Index("ix_cache_entries_tenant_id_scope_prompt", "tenant_id", "scope", "prompt"),
    sa.Index("ix_cache_entries_tenant_id_prompt", "tenant_id", "prompt"),
    sa.Index("ix_cache_entries_tenant_id_sharing_created_at", "tenant_id", "sharing", "created_at"),
    sa.Index("ix_cache_entries_tenant_id_expires_at", "tenant_id", "expires_at"),
    sa.Index(
        "ix_cache_entries_tenant_id_session_id", "tenant_id", "session_id", postgresql_where=sa.text("session_id IS NOT NULL")
    ),
)

cache_ties = sa.Table(
    "cache_ties",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("tag", sa.Text, primary_key=True),
    sa.Column("entry_id", sa.Uuid, primary_key=True),
    sa.ForeignKeyConstraint(["tenant_id", "entry_id"], ["cache_entries.tenant_id", "cache_entries.entry_id"], ondelete="CASCADE"),
    sa.Index("ix_cache_ties_tenant_id_entry_id", "tenant_id", "entry_id"),
)
