"""Two services as processes of their own on one database that is given by URL: neither takes what the other one holds."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from coatcheck.app.data_dir import DataDirectory
from coatcheck.app.storage import open_index
from coatcheck.domain.errors import RefusedToStart
from coatcheck.store.engine import with_driver
from tests.apps import settings_for
from tests.faults.points import named
from tests.faults.served import Service, left_pending
from tests.postgres import Postgres
from tests.windows import request

LEASE_S = 4
WAIT_S = 60


class Replica(Service):
    """A service by URL, with a data directory of its own."""

    SERVE = ("serve", "--port", "0")


class Installation:
    """A database, a journal and a root key that replicas share. Each has an index of its own: these tests look at rows."""

    def __init__(self, postgres: Postgres, database: str, folder: Path) -> None:
        self._folder = folder
        self._rows = sa.create_engine(with_driver(postgres.owner_url(database)), poolclass=sa.NullPool)
        self._settings = {
            "COATCHECK_DATABASE_URL": postgres.login_url(database),
            "COATCHECK_QDRANT_URL": ":memory:",
            "COATCHECK_TEST_MEMORY_INDEX": "1",
            "COATCHECK_ROOT_KEY": secrets.token_hex(32),
            "COATCHECK_ERASURE_JOURNAL": str(folder / "journal"),
            "COATCHECK_LEASE_S": str(LEASE_S),
            "COATCHECK_RECONCILE_INTERVAL_S": "0.2",
        }
        self.replicas: list[Replica] = []

    def replica(self) -> Replica:
        folder = self._folder / f"replica-{len(self.replicas)}"
        folder.mkdir()
        self.replicas.append(Replica(folder, **self._settings))
        return self.replicas[-1]

    def run(self) -> Any:
        """The one run that there is: its status, who holds it with which fence, and whether the lease lives."""
        with self._rows.connect() as connection:
            return connection.execute(
                sa.text("SELECT status, lease_owner, lease_fence, lease_until > now() AS is_leased FROM runs")
            ).one_or_none()

    def generations(self) -> int:
        with self._rows.connect() as connection:
            return int(connection.scalar(sa.text("SELECT count(*) FROM generations")) or 0)


@pytest.fixture
def installation(postgres: Postgres, tmp_path: Path) -> Iterator[Installation]:
    with postgres.clone() as database:
        one = Installation(postgres, database, tmp_path)
        try:
            yield one
        finally:
            for replica in one.replicas:
                replica.end()


def until(holds: Callable[[], bool], said: Callable[[], str]) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < give_up_at, said()
        time.sleep(0.1)


def test_a_starting_replica_takes_over_no_lease_that_another_one_holds_and_every_one_that_has_run_out(
    installation: Installation,
) -> None:
    one, two = installation.replica(), installation.replica()
    one.start("before-acknowledge=sleep:600")
    with one.client() as http:
        pending = left_pending(http, request("s"))
    assert (pending.status_code, pending.json()["retryable"]) == (503, True)
    held = installation.run()

    two.start()
    beside = installation.run()
    one.kill()
    until(lambda: installation.run().status == "acknowledged", two.said)
    taken_over = installation.run()

    assert (held.status, held.is_leased) == ("persisted", True)
    assert beside == held
    assert taken_over.lease_fence == held.lease_fence + 1


def test_of_replicas_that_start_at_once_on_a_fresh_database_each_serves_and_one_leaves_the_first_key(
    installation: Installation,
) -> None:
    both = [installation.replica(), installation.replica()]

    for one in both:
        one.begin()
    until(lambda: all((one.data_dir / "run.json").exists() or not one.is_alive() for one in both), both[0].said)

    assert all(one.is_alive() for one in both), [one.said() for one in both]
    assert sorted((one.data_dir / "local.key").exists() for one in both) == [False, True]
    assert installation.generations() == 1


@pytest.mark.parametrize(
    "point",
    [pytest.param(point, marks=[pytest.mark.accept] if point != "after-first-key" else []) for point in named("first key")],
)
def test_a_first_start_that_is_killed_leaves_a_key_that_works_by_the_next(installation: Installation, point: str) -> None:
    one = installation.replica()

    assert one.start(f"{point}=kill") is None
    left = (one.data_dir / "local.key").exists()
    one.start()

    with one.client() as http:
        assert [tenant["name"] for tenant in http.get("/v1/admin/tenants").json()["tenants"]] == ["local"]
        assert len(http.get("/v1/admin/keys").json()["keys"]) == 1
    assert not left
    assert not (one.data_dir / "local.key.pending").exists()


async def test_an_index_in_memory_is_no_index_to_serve_from(tmp_path: Path) -> None:
    settings = settings_for("postgresql://nowhere", tmp_path, qdrant_url=":memory:")

    with pytest.raises(RefusedToStart, match="gone with its process"):
        await open_index(settings, DataDirectory(tmp_path))
