"""What a tenant may take, what it holds, for how long, and what was erased of it; and which root keys there were."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from coatcheck.store.tables.base import TIME, metadata, now


def _tenant() -> sa.Column[object]:
    return sa.Column("tenant_id", sa.Uuid, sa.ForeignKey("tenants.tenant_id", ondelete="CASCADE"), primary_key=True)


tenant_limits = sa.Table(
    "tenant_limits",
    metadata,
    _tenant(),
    sa.Column("requests_per_minute", sa.Double),
    sa.Column("bytes_per_minute", sa.Double),
    sa.Column("embedding_seconds_per_minute", sa.Double),
    sa.Column("max_segments", sa.BigInteger),
    sa.Column("max_bytes", sa.BigInteger),
    now("changed_at"),
)

# No foreign key: the triggers also write while a tenant's last rows go with it.
stored_usage = sa.Table(
    "stored_usage",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("usage_id", sa.Uuid, primary_key=True, server_default=sa.text("gen_random_uuid()")),
    sa.Column("segments", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
)

erasures = sa.Table(
    "erasures",
    metadata,
    _tenant(),
    sa.Column("erasure_id", sa.Uuid, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("target_id", sa.Uuid, nullable=False),
    sa.Column("session_id", sa.Uuid),
    sa.Column("owner_id", sa.Uuid),
    sa.Column("requested_by", sa.Uuid),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("requested_at", TIME, nullable=False),
    sa.Column("completed_at", TIME),
    sa.Column("counts", JSONB, nullable=False, server_default="{}"),
    sa.Column("journal_mac", sa.Text),
    sa.Column("key_version", sa.Integer),
    sa.Column("tag", sa.Text),
    sa.Index("uq_erasures_tenant_id_kind_target_id", "tenant_id", "kind", "target_id", unique=True),
)

retention = sa.Table(
    "retention",
    metadata,
    _tenant(),
    sa.Column("visibility", sa.Text, primary_key=True),
    sa.Column("max_age_days", sa.Integer, nullable=False),
    now("changed_at"),
)

root_keys = sa.Table(
    "root_keys",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("fingerprint", sa.Text, nullable=False, unique=True),
    now("introduced_at"),
)
