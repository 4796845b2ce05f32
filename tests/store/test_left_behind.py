"""A start at once after a service was killed, at whatever moment: its server's processes end first, and nothing is in the way."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil

from coatcheck.store import left_behind
from coatcheck.store.embedded import EmbeddedServer
from coatcheck.store.engine_files import environment, find_account, find_programs
from tests.folders import servers_in
from tests.store.servers import holder, kept

START = "import sys; from pathlib import Path; from coatcheck.store.embedded import EmbeddedServer as S; S.start(Path(sys.argv[1]))"


def in_the_engines_place(data_dir: Path, script: str) -> subprocess.Popen[bytes]:
    """What a service that was killed had just begun to run on its cluster."""
    account = find_account()
    with left_behind.take_over(data_dir / "postgres") as lock:
        return subprocess.Popen(
            ["sh", "-c", script],
            cwd="/",
            env=environment(),
            pass_fds=[lock.fileno()],
            user=account.uid if account else None,
            group=account.gid if account else None,
        )


def test_what_works_on_the_cluster_and_does_not_look_like_it_is_waited_for(data_dir: Path) -> None:
    with in_the_engines_place(data_dir, "sleep 1") as orphan:
        server = EmbeddedServer.start(data_dir)

        assert orphan.poll() == 0
        server.stop()


def test_a_server_that_was_being_started_when_its_service_died_is_ended_first(data_dir: Path) -> None:
    with holder(data_dir):
        pass
    programs = find_programs(data_dir, find_account())
    cluster = data_dir / "postgres"
    with in_the_engines_place(
        data_dir, f"sleep 0.3; exec {programs.bin}/postgres -D {cluster} -c unix_socket_directories={cluster} -c listen_addresses="
    ) as late:
        server = EmbeddedServer.start(data_dir)

        assert late.poll() is not None
        assert kept(server) == [1]
        server.stop()


def test_a_first_start_that_is_killed_while_the_cluster_is_made_is_made_up_for_at_once(fresh_dir: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", START, str(fresh_dir)]) as first:
        while not (fresh_dir / "postgres.unfinished" / "base").exists():
            assert first.poll() is None
            time.sleep(0.001)
        first.kill()

    started = time.monotonic()
    server = EmbeddedServer.start(fresh_dir)
    took_s = time.monotonic() - started

    assert took_s < left_behind.STOP_LIMIT_S  # it was waited for, not given up
    server.stop()


def test_processes_of_a_server_that_was_killed_alone_are_gone_before_the_next_starts(data_dir: Path) -> None:
    with holder(data_dir) as process:
        process.kill()
        before = servers_in(data_dir)
        lock = (data_dir / "postgres" / "postmaster.pid").read_text().splitlines()
        psutil.Process(int(lock[0])).kill()

        server = EmbeddedServer.start(data_dir)

        assert [old for old in before if old.is_running() and old.status() != psutil.STATUS_ZOMBIE] == []
        assert kept(server) == [1]
        server.stop()


def test_a_lock_file_that_a_power_cut_left_torn_is_in_nobodys_way(data_dir: Path) -> None:
    for torn in (b"", b"\xff\x00\xfe", b"\n\n\n\n\n", b"12345\n/"):
        (data_dir / "postgres" / "postmaster.pid").write_bytes(torn)

        server = EmbeddedServer.start(data_dir)

        server.stop()
