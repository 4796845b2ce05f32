"""How Alembic runs here: on a connection that acts as the owner, one transaction for each revision.

``coatcheck migrate`` hands the connection over. By hand, as when a revision is written:
``alembic -x url=postgresql://... revision --autogenerate -m "why"``, after which policies and grants are added by hand.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

from coatcheck.store.migrate import owner_connection
from coatcheck.store.tables import metadata


def run(connection: sa.Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        transaction_per_migration=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()


handed_over = context.config.attributes.get("connection")
if handed_over is not None:
    run(handed_over)
else:
    with owner_connection(context.get_x_argument(as_dictionary=True)["url"]) as own:
        run(own)
