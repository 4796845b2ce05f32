"""A start that is refused: a server that promises too little, a login that may do too much, a schema of another release."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from coatcheck.domain.errors import RefusedToStart
from coatcheck.store.database import Database
from coatcheck.store.schema import APP_ROLE, LOGIN_ROLE, OWNER_ROLE, SCHEMA_REVISION, WORKER_ROLE
from tests.postgres import Postgres


async def reason(url: str) -> str:
    database = await Database.connect(url)
    try:
        with pytest.raises(RefusedToStart) as caught:
            await database.check_durability()
    finally:
        await database.close()
    return caught.value.detail


@contextmanager
def login(postgres: Postgres, attributes: str, *roles: str) -> Iterator[str]:
    """A role that may log in, with these attributes and roles."""
    name = f"coatcheck_test_{secrets.token_hex(6)}"
    password = f" PASSWORD '{postgres.login_password}'" if postgres.login_password else ""
    postgres.execute(f"CREATE ROLE {name} LOGIN {attributes}{password}")
    try:
        for role in roles:
            postgres.execute(f"GRANT {role} TO {name}")
        yield name
    finally:
        postgres.execute(f"DROP ROLE {name}")


def as_login(url: str, name: str) -> str:
    return sa.make_url(url).set(username=name).render_as_string(hide_password=False)


async def test_what_the_server_promises_is_read_back_from_it(database: Database) -> None:
    found = await database.check_durability()

    assert {name: found[name] for name in ("fsync", "full_page_writes", "synchronous_commit")} == {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
    }
    assert (found["login"], found["schema_revision"]) == (LOGIN_ROLE, SCHEMA_REVISION)
    assert int(found["server_version"].split(".")[0]) >= 15


@pytest.mark.parametrize("value", ["off", "local", "remote_write"])
async def test_a_weaker_commit_is_refused(fresh_database_url: str, postgres: Postgres, value: str) -> None:
    postgres.execute(f"ALTER DATABASE {sa.make_url(fresh_database_url).database} SET synchronous_commit = {value}")

    assert "synchronous_commit" in await reason(fresh_database_url)


@pytest.mark.parametrize(
    ("attributes", "roles", "expected"),
    [
        ("SUPERUSER", (APP_ROLE, WORKER_ROLE), "superuser"),
        ("NOINHERIT BYPASSRLS", (APP_ROLE, WORKER_ROLE), "bypasses row security"),
        ("NOINHERIT", (APP_ROLE, WORKER_ROLE, OWNER_ROLE), OWNER_ROLE),
        ("NOINHERIT", (APP_ROLE,), "not a member of both"),
        ("INHERIT", (APP_ROLE, WORKER_ROLE), "inherits"),
    ],
)
async def test_a_login_that_may_do_too_much_or_too_little_is_refused(
    database_url: str, postgres: Postgres, attributes: str, roles: tuple[str, ...], expected: str
) -> None:
    with login(postgres, attributes, *roles) as name:
        assert expected in await reason(as_login(database_url, name))


async def test_a_login_of_any_name_serves_when_it_is_a_member_of_both_roles(database_url: str, postgres: Postgres) -> None:
    with login(postgres, "NOINHERIT", APP_ROLE, WORKER_ROLE) as name:
        database = await Database.connect(as_login(database_url, name))
        found = await database.check_durability()
        await database.close()

    assert found["login"] == name


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda name: f"UPDATE {name} SET version_num = '9999'", "9999"),
        (lambda name: f"DELETE FROM {name}", "None"),
    ],
    ids=["newer", "none"],
)
async def test_a_schema_of_another_release_is_refused(
    fresh_database_url: str, postgres: Postgres, change: Callable[[str], str], expected: str
) -> None:
    name = sa.make_url(fresh_database_url).database
    assert name is not None
    with sa.create_engine(postgres.owner_url(name), poolclass=sa.NullPool).begin() as connection:
        connection.exec_driver_sql(change("alembic_version"))

    assert expected in await reason(fresh_database_url)


async def test_a_database_that_was_never_migrated_is_refused(postgres: Postgres) -> None:
    with postgres.empty_database() as name:
        assert "coatcheck migrate" in await reason(postgres.login_url(name))
