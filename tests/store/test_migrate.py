"""Migrations: once, by one process at a time, by a login that may, to a revision that this release knows."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from coatcheck.domain.errors import RefusedToStart, StoreUnavailable
from coatcheck.store.migrate import config, migrate, migrations_folder, owner_connection
from coatcheck.store.schema import OWNER_ROLE, SCHEMA_REVISION
from tests.postgres import Postgres


def test_an_empty_database_is_migrated_once(postgres: Postgres) -> None:
    with postgres.empty_database() as name:
        changed = [migrate(postgres.owner_url(name)) for _ in range(2)]

    assert changed == [True, False]


def test_processes_that_migrate_at_the_same_time_wait_for_one_another(postgres: Postgres) -> None:
    with postgres.empty_database() as name, ThreadPoolExecutor(3) as pool:
        changed = list(pool.map(migrate, [postgres.owner_url(name)] * 3))

    assert sorted(changed) == [False, False, True]


def test_the_newest_revision_is_the_one_that_the_service_expects(postgres: Postgres) -> None:
    with postgres.clone() as name, owner_connection(postgres.owner_url(name)) as connection:
        assert ScriptDirectory.from_config(config(connection)).get_heads() == [SCHEMA_REVISION]
    assert (migrations_folder() / "env.py").is_file()


def test_a_database_of_a_newer_release_is_left_alone(postgres: Postgres) -> None:
    with postgres.clone() as name:
        with sa.create_engine(postgres.owner_url(name), poolclass=sa.NullPool).begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

        with pytest.raises(RefusedToStart, match="newer"):
            migrate(postgres.owner_url(name))


def test_a_login_that_may_neither_create_roles_nor_act_as_owner_is_told_what_is_needed(postgres: Postgres) -> None:
    login = f"coatcheck_test_{secrets.token_hex(6)}"
    password = f" PASSWORD '{postgres.login_password}'" if postgres.login_password else ""
    postgres.execute(f"CREATE ROLE {login} LOGIN{password}")
    try:
        with postgres.empty_database() as name:
            url = sa.make_url(postgres.login_url(name)).set(username=login).render_as_string(hide_password=False)

            with pytest.raises(RefusedToStart, match=f"GRANT {OWNER_ROLE} TO"):
                migrate(url)
    finally:
        postgres.execute(f"DROP ROLE {login}")


def test_the_owner_of_a_managed_database_migrates_without_being_a_superuser(postgres: Postgres) -> None:
    login = f"coatcheck_test_{secrets.token_hex(6)}"
    password = f" PASSWORD '{postgres.login_password}'" if postgres.login_password else ""
    postgres.execute(f"CREATE ROLE {login} LOGIN{password}")
    try:
        postgres.execute(f"GRANT {OWNER_ROLE} TO {login}")
        with postgres.empty_database() as name:
            postgres.execute(f"ALTER DATABASE {name} OWNER TO {login}")
            url = sa.make_url(postgres.login_url(name)).set(username=login).render_as_string(hide_password=False)

            assert migrate(url)

            with psycopg.connect(postgres.owner_url(name).replace("+psycopg", "")) as connection:
                owners = connection.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'").fetchall()
            assert owners == [(OWNER_ROLE,)]
    finally:
        postgres.execute(f"DROP ROLE {login}")


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        migrate("postgresql://nobody@/nothing?host=/nonexistent")


def test_texts_are_compressed_with_lz4_where_the_server_has_it_and_migrated_where_it_has_not(postgres: Postgres) -> None:
    with postgres.clone() as name, psycopg.connect(postgres.owner_url(name).replace("+psycopg", "")) as connection:
        has_lz4 = connection.execute(
            "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
        ).fetchone()
        rows = connection.execute(
            "SELECT attrelid::regclass::text || '.' || attname FROM pg_attribute WHERE attcompression = 'l'"
            " AND attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r')"
        ).fetchall()

    compressed = {row[0] for row in rows}
    every_text = {
        "runs.handoff_text", "runs.handoff", "segments.raw", "reductions.raw", "blobs.raw",
        "entries.frame_before", "entries.frame_after",
    }  # fmt: skip
    assert compressed == (every_text if has_lz4 == (True,) else set())
