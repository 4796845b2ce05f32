"""One PostgreSQL for a test session: embedded, or the one that COATCHECK_TEST_DATABASE_URL names.

Who starts many sessions on one server names a migrated database of its own there as COATCHECK_TEST_TEMPLATE, and spares each the
migration.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from coatcheck.store.embedded import EmbeddedServer
from coatcheck.store.engine import with_driver
from coatcheck.store.migrate import migrate
from coatcheck.store.roles import ensure_login, ensure_roles
from coatcheck.store.schema import LOGIN_ROLE
from tests.folders import open_folder


@dataclass(frozen=True, slots=True)
class Postgres:
    """A server with one migrated template; ``admin`` may create databases and roles in it."""

    admin: sa.URL
    login_password: str | None
    template: str

    def owner_url(self, database: str) -> str:
        return self.admin.set(database=database).render_as_string(hide_password=False)

    def login_url(self, database: str) -> str:
        login = self.admin.set(username=LOGIN_ROLE, password=self.login_password, database=database)
        return login.render_as_string(hide_password=False)

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """The name of a database without any table."""
        with self._database("template0") as name:
            yield name

    @contextmanager
    def clone(self) -> Iterator[str]:
        """The name of a migrated database without any row."""
        with self._database(self.template) as name:
            yield name

    def execute(self, statement: str) -> None:
        """Runs a statement that no transaction may hold."""
        engine = sa.create_engine(self.admin, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)

    @contextmanager
    def _database(self, template: str) -> Iterator[str]:
        name = f"coatcheck_test_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield name
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def running_postgres(url: str | None, template: str | None = None) -> Iterator[Postgres]:
    """A server with its template; stopped and removed at the end, or left with nothing of ours in it."""
    if url is not None and template is not None:
        yield Postgres(with_driver(url), None, template)
    elif url is not None:
        yield from _prepared(with_driver(url))
    else:
        with open_folder() as folder:
            server = EmbeddedServer.start(folder)
            try:
                yield from _prepared(sa.make_url(server.owner_url))
            finally:
                server.stop()


def _prepared(admin: sa.URL) -> Iterator[Postgres]:
    password = secrets.token_hex(16) if admin.password is not None else None
    # A name of this session's own: several may work on one server at a time.
    postgres = Postgres(admin, password, f"coatcheck_test_template_{secrets.token_hex(6)}")
    with sa.create_engine(admin, poolclass=sa.NullPool).begin() as connection:
        ensure_roles(connection)
        ensure_login(connection)
        if password is not None:
            connection.exec_driver_sql(f"ALTER ROLE {LOGIN_ROLE} PASSWORD '{password}'")
    postgres.execute(f"CREATE DATABASE {postgres.template} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        migrate(postgres.owner_url(postgres.template))
        yield postgres
    finally:
        postgres.execute(f"DROP DATABASE {postgres.template} WITH (FORCE)")
