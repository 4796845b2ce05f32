"""Proof that the migrations are right, on a server of its own: ``python -m tests.check_migrations``.

The models and the migrated tables agree (alembic check); so do the policies and grants; up, down and up again gives the same
schema; and a revision made from the template runs on a database that has rows, without losing one.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from coatcheck.store import counting, policies
from coatcheck.store.migrate import config, current_revision, migrate, migrations_folder, owner_connection
from coatcheck.store.schema import SCHEMA_REVISION
from coatcheck.store.tables import metadata
from tests.postgres import Postgres, running_postgres

_CATALOGUE = sa.text("""
    SELECT 'column', table_name, column_name, concat_ws(' ', data_type, is_nullable, column_default)
      FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL
    SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL
    SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
      FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    UNION ALL
    SELECT 'policy', tablename, policyname, concat_ws(' | ', roles::text, cmd, qual, with_check)
      FROM pg_policies WHERE schemaname = 'public'
    UNION ALL
    SELECT 'grant', table_name, grantee || ' ' || privilege_type, ''
      FROM information_schema.role_table_grants WHERE table_schema = 'public' AND grantee <> 'coatcheck_owner'
    UNION ALL
    SELECT 'column grant', table_name, column_name || ' ' || grantee || ' ' || privilege_type, ''
      FROM information_schema.column_privileges WHERE table_schema = 'public' AND grantee <> 'coatcheck_owner'
    UNION ALL
    SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT 'function', proname, '', prosrc || prosecdef FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'row security', relname, relrowsecurity::text, relforcerowsecurity::text
      FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
     ORDER BY 1, 2, 3, 4
""")

Schema = list[tuple[str, str, str, str]]


def models_and_migrations_agree(postgres: Postgres) -> None:
    """What Alembic compares: tables, columns, types, defaults, constraints, indexes."""
    with postgres.clone() as name, owner_connection(postgres.owner_url(name)) as connection:
        command.check(config(connection))


def policies_and_migrations_agree(postgres: Postgres) -> None:
    """What Alembic does not compare: everything in the catalogue, against tables made from the models and ``policies``."""
    with postgres.clone() as name, owner_connection(postgres.owner_url(name)) as connection:
        migrated = _catalogue(connection)
    with postgres.empty_database() as name, owner_connection(postgres.owner_url(name)) as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num varchar(32) NOT NULL)")
        connection.exec_driver_sql("ALTER TABLE alembic_version ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)")
        metadata.create_all(connection)
        for statement in (*policies.statements(), *counting.statements()):
            connection.exec_driver_sql(statement)
        desired = _catalogue(connection)
    _must_be_equal(migrated, desired)


def down_and_up_again_is_the_same(postgres: Postgres) -> None:
    """Every revision can be taken back, and leaves nothing behind."""
    with postgres.clone() as name, owner_connection(postgres.owner_url(name)) as connection:
        before = _catalogue(connection)
        command.downgrade(config(connection), "base")
        connection.commit()
        left = {row for row in _catalogue(connection) if row[1] != "alembic_version"}
        if left:
            raise AssertionError(f"a downgrade leaves {sorted(left)[:5]}")
        command.upgrade(config(connection), "head")
        connection.commit()
        _must_be_equal(_catalogue(connection), before)


def rows_survive_every_migration(postgres: Postgres) -> None:
    """From the first revision on, and through a next one that is made from the template."""
    with postgres.empty_database() as name, tempfile.TemporaryDirectory() as scratch:
        with owner_connection(postgres.owner_url(name)) as connection:
            folder = Path(scratch) / "migrations"
            shutil.copytree(migrations_folder(), folder)
            first = ScriptDirectory.from_config(config(connection, folder=folder)).get_base()
            command.upgrade(config(connection, folder=folder), first or "head")
            connection.commit()
        _populate(postgres.owner_url(name))
        with owner_connection(postgres.owner_url(name)) as connection:
            command.upgrade(config(connection, folder=folder), "head")
            _write_next_revision(config(connection, folder=folder), folder)
            command.upgrade(config(connection, folder=folder), "head")
            connection.commit()
            waiting = connection.exec_driver_sql("SELECT current_setting('lock_timeout')").scalar()
            if waiting != "0":
                raise AssertionError("a migration's time-outs outlive it")
        _must_count(postgres.owner_url(name), {"tenants": 1, "sessions": 1, "segments": 200})


def migrating_twice_changes_nothing(postgres: Postgres) -> None:
    """The service migrates its embedded database at every start."""
    with postgres.clone() as name:
        if migrate(postgres.owner_url(name)):
            raise AssertionError("a migrated database was migrated")
        with owner_connection(postgres.owner_url(name)) as connection:
            if current_revision(connection) != SCHEMA_REVISION:
                raise AssertionError("the newest revision is not the one the service expects")


CHECKS: tuple[Callable[[Postgres], None], ...] = (
    models_and_migrations_agree,
    policies_and_migrations_agree,
    down_and_up_again_is_the_same,
    rows_survive_every_migration,
    migrating_twice_changes_nothing,
)


def main() -> int:
    with running_postgres(os.environ.get("COATCHECK_TEST_DATABASE_URL")) as postgres:
        for check in CHECKS:
            check(postgres)
            print(f"{check.__name__.replace('_', ' ')}: yes")
    return 0


def _catalogue(connection: sa.Connection) -> Schema:
    rows = [(row[0], row[1], row[2], row[3]) for row in connection.execute(_CATALOGUE)]
    connection.commit()
    return rows


def _must_be_equal(found: Schema, expected: Schema) -> None:
    more, less = sorted(set(found) - set(expected)), sorted(set(expected) - set(found))
    if more or less:
        raise AssertionError(f"only in the one: {more[:5]}; only in the other: {less[:5]}")


def _populate(owner_url: str) -> None:
    """Rows as the first revision takes them: columns that came later must have been given a default."""
    tenant, session, principal = uuid4(), uuid4(), uuid4()
    with sa.create_engine(owner_url, poolclass=sa.NullPool).begin() as connection:
        connection.execute(
            sa.text("INSERT INTO tenants (tenant_id, name, key_fingerprint) VALUES (:tenant, 'tenant', 'fingerprint')"),
            {"tenant": tenant},
        )
        connection.execute(
            sa.text(
                "INSERT INTO sessions (tenant_id, session_id, name, owner_id, visibility, acl, writers)"
                " VALUES (:tenant, :session, 'session', :owner, 'personal', ARRAY[:key], ARRAY[:key])"
            ),
            {"tenant": tenant, "session": session, "owner": principal, "key": f"p:{principal}"},
        )
        connection.execute(
            sa.text(
                "INSERT INTO segments (tenant_id, session_id, sha256, raw, chars, rule_revision)"
                " SELECT :tenant, :session, md5(n::text), convert_to(repeat('text ', n), 'UTF8'), 5 * n, 'rules'"
                " FROM generate_series(1, 200) n"
            ),
            {"tenant": tenant, "session": session},
        )


def _write_next_revision(made: Config, folder: Path) -> None:
    command.revision(made, message="A column for the check", rev_id="next")
    [path] = folder.glob("versions/next_*.py")
    text = path.read_text()
    change = "op.add_column('segments', sa.Column('checked', sa.Boolean, nullable=False, server_default='false'))"
    path.write_text(text.replace("    limit_waiting()\n    pass\n", f"    limit_waiting()\n    {change}\n", 1))
    if "SET LOCAL lock_timeout" not in text or change not in path.read_text():
        raise AssertionError("the template does not limit how long a migration waits")


def _must_count(owner_url: str, expected: dict[str, int]) -> None:
    with sa.create_engine(owner_url, poolclass=sa.NullPool).connect() as connection:
        found = {table: connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() for table in expected}
        checked = connection.exec_driver_sql("SELECT count(*) FROM segments WHERE NOT checked").scalar()
    if found != expected or checked != expected["segments"]:
        raise AssertionError(f"rows were lost: {found} of {expected}")


if __name__ == "__main__":
    sys.exit(main())
