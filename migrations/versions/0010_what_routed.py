"""An entry has the router's scores; a dropped one the hash of the text that is not kept. Both may be absent: old entries stay."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    limit_waiting()
    op.add_column("entries", sa.Column("scores", JSONB))
    op.add_column("entries", sa.Column("dropped_sha256", sa.Text))


def downgrade() -> None:
    limit_waiting()
    op.drop_column("entries", "dropped_sha256")
    op.drop_column("entries", "scores")


def limit_waiting() -> None:
    """A migration that cannot have its lock soon gives up, instead of making every request queue behind it."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")
