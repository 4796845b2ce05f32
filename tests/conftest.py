"""Fixtures that build real things: a PostgreSQL for the session, a migrated database for each module, a tenant for each test."""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

import pytest

from coatcheck.store.database import Database
from tests.postgres import Postgres, running_postgres
from tests.tenants import Tenancy, new_tenancy


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What the collection has made stays to the end: looking through its million objects for garbage costs a second each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """A report with a lone surrogate in it cannot be sent by a worker process, and would end the whole run in place of one test."""
    return _sendable((yield))


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_sendable(key): _sendable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_sendable, value))
    return value


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_this_machine() -> None:
    """What the developer has set must not change what a test sees."""
    for name in [name for name in os.environ if name.startswith("COATCHECK_") and not name.startswith("COATCHECK_TEST_")]:
        del os.environ[name]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The server of this test session, with a migrated template."""
    with running_postgres(os.environ.get("COATCHECK_TEST_DATABASE_URL"), os.environ.get("COATCHECK_TEST_TEMPLATE")) as server:
        yield server


@pytest.fixture(scope="module")
def database_url(postgres: Postgres) -> Iterator[str]:
    """A migrated database of this module's own, as the serving login. Its tests keep apart by tenant."""
    with postgres.clone() as name:
        yield postgres.login_url(name)


@pytest.fixture
def fresh_database_url(postgres: Postgres) -> Iterator[str]:
    """A migrated database of this test's own, as the serving login."""
    with postgres.clone() as name:
        yield postgres.login_url(name)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """The module's database, open."""
    opened = await Database.connect(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def tenant(database: Database) -> Tenancy:
    """A tenant of this test's own."""
    return await new_tenancy(database)


@pytest.fixture
async def other_tenant(database: Database) -> Tenancy:
    """Another tenant in the same database."""
    return await new_tenancy(database)
