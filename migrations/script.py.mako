"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    limit_waiting()
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    limit_waiting()
    ${downgrades if downgrades else "pass"}


def limit_waiting() -> None:
    """A migration that cannot have its lock soon gives up, instead of making every request queue behind it.

    Row security is forced on the owner too: a revision that rewrites rows lifts FORCE from its table, and puts it back.
    """
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60s'")
