"""Brings a database to this release's schema. Alembic is imported only when there is something to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
import sqlalchemy.exc as sa_exc

from coatcheck.domain.errors import RefusedToStart, StoreUnavailable
from coatcheck.store.engine import CONNECT_TIMEOUT_S, with_driver
from coatcheck.store.roles import ensure_roles
from coatcheck.store.schema import OLDEST_SERVER, OWNER_ROLE, SCHEMA_REVISION

if TYPE_CHECKING:
    from alembic.config import Config

_ONE_AT_A_TIME = 0x636F6174
"""The advisory lock that two processes migrating the same database queue for."""


def migrate(owner_url: str) -> bool:
    """Migrates to the newest revision; True when anything changed. Raises RefusedToStart, StoreUnavailable.

    The login of the URL must be able to act as the owner role; it makes the roles itself where it may create roles.
    """
    with owner_connection(owner_url) as connection:
        revision = current_revision(connection)
        if revision == SCHEMA_REVISION:
            return False
        from alembic import command
        from alembic.util import CommandError

        try:
            command.upgrade(config(connection), "head")
        except CommandError as error:
            raise RefusedToStart(
                f"The database is at a revision that this release does not know ({revision}): it was migrated by a newer one."
            ) from error
        connection.commit()
        return True


@contextmanager
def owner_connection(owner_url: str) -> Iterator[sa.Connection]:
    """A connection that acts as the owner role and holds the lock of migrations. Raises RefusedToStart, StoreUnavailable."""
    engine = sa.create_engine(
        with_driver(owner_url),
        poolclass=sa.NullPool,
        hide_parameters=True,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "coatcheck migrate"},
    )
    try:
        connection = engine.connect()
    except sa_exc.OperationalError as error:
        raise StoreUnavailable("The database to migrate cannot be reached.") from error
    with connection:
        if connection.scalar(sa.text("SELECT current_setting('server_version_num')::integer")) < OLDEST_SERVER * 10_000:
            raise RefusedToStart(f"PostgreSQL {OLDEST_SERVER} or newer is needed.")
        connection.execute(sa.text("SELECT pg_advisory_lock(:key)"), {"key": _ONE_AT_A_TIME})
        ensure_roles(connection)
        connection.commit()
        connection.exec_driver_sql(f"SET ROLE {OWNER_ROLE}")
        connection.commit()
        yield connection


def current_revision(connection: sa.Connection) -> str | None:
    """The revision that the database is at; None where it has never been migrated."""
    revision: str | None = None
    if connection.scalar(sa.text("SELECT to_regclass('public.alembic_version')")) is not None:
        revision = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    connection.commit()
    return revision


def config(connection: sa.Connection, *, folder: Path | None = None) -> Config:
    """Alembic's configuration for one open connection; there is no ini file."""
    from alembic.config import Config

    made = Config()
    made.set_main_option("script_location", str(folder or migrations_folder()))
    made.attributes["connection"] = connection
    return made


def migrations_folder() -> Path:
    """The migrations that the wheel carries, or a clone's own."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "migrations"
    return packaged if packaged.is_dir() else package.parents[1] / "migrations"
