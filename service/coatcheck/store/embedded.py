"""PostgreSQL in the data directory: made at first use, started with the service, stopped with it.

Whoever starts it holds the lock of the data directory, so a server that is found running was left behind by a process that
died: it is shut down and started again, which ends that process's transactions (``left_behind``). Only a local socket is open,
in a folder that nobody else may enter.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, NoReturn

import psycopg
import sqlalchemy as sa

from coatcheck.domain.errors import RefusedToStart
from coatcheck.ops.folders import sync_folder
from coatcheck.store import left_behind
from coatcheck.store.engine import DRIVER
from coatcheck.store.engine_files import Programs, environment, find_account, find_programs, prepare_data_dir
from coatcheck.store.left_behind import SOCKET_DIR_PREFIX, SOCKET_NAME, temporary
from coatcheck.store.roles import ensure_login, ensure_roles
from coatcheck.store.schema import LOGIN_ROLE

if TYPE_CHECKING:
    import psutil

DATABASE = "coatcheck"
SUPERUSER = "postgres"
START_LIMIT_S = 600
"""Recovery after a crash may read up to a gigabyte of log first."""
SOCKET_PATH_MAX_BYTES = 100
"""The kernel's limit is 107 (unix(7)); the lock file beside the socket has five more."""

_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_connections": "100",
    "timezone": "UTC",
    "jit": "off",
    "io_method": "sync",
    "max_parallel_workers_per_gather": "0",
    # A fresh database grows fast: its planner must not go on for a minute with what it knew of empty tables.
    "autovacuum_naptime": "10s",
    # The server's log must hold no content: details and statements repeat values.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
}


class EmbeddedServer:
    """One running server. ``url`` is the serving login's, ``owner_url`` the one to migrate with."""

    def __init__(self, process: psutil.Popen, socket_dir: Path, own_socket_dir: bool, lock: IO[str]) -> None:
        self._process = process
        self._socket_dir = socket_dir
        self._own_socket_dir = own_socket_dir
        self._lock = lock
        self._started_by = os.getpid()
        self._stopping = threading.Lock()

    @classmethod
    def start(cls, data_dir: Path, *, allow_root_home: bool = False) -> EmbeddedServer:
        """Makes the cluster where there is none, and starts it. Raises RefusedToStart. Blocks until it takes connections."""
        data_dir = data_dir.expanduser().resolve()
        account = find_account()
        prepare_data_dir(data_dir, account, allow_root_home=allow_root_home)
        programs = find_programs(data_dir, account)
        cluster = data_dir / "postgres"
        lock = left_behind.take_over(cluster)
        try:
            _ensure_cluster(cluster, programs, lock)
            socket_dir = _socket_dir(cluster, programs)
            log = data_dir / "postgres.log"
            server = cls(_launch(cluster, socket_dir, log, programs, lock), socket_dir, socket_dir != cluster, lock)
        except BaseException:
            lock.close()
            raise
        atexit.register(server._stop_at_exit)
        exit_in_order_at_sigterm()
        try:
            server._wait_until_ready(log)
            server._ensure_database()
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def url(self) -> str:
        """The serving login."""
        return self.url_of(LOGIN_ROLE, DATABASE)

    @property
    def owner_url(self) -> str:
        """The superuser, for migrations; serving with it is refused."""
        return self.url_of(SUPERUSER, DATABASE)

    def url_of(self, login: str, database: str) -> str:
        """The URL of a login in a database."""
        url = sa.URL.create(DRIVER, username=login, database=database, query={"host": str(self._socket_dir)})
        return url.render_as_string(hide_password=False)

    def stop(self) -> None:
        """Shuts down in order: ends connections, writes a checkpoint. Does nothing the second time."""
        with self._stopping:
            atexit.unregister(self._stop_at_exit)
            left_behind.shut_down(self._process)
            if self._own_socket_dir:
                shutil.rmtree(self._socket_dir, ignore_errors=True)
            self._lock.close()

    def _stop_at_exit(self) -> None:
        if os.getpid() == self._started_by:  # and not in a child that was forked from it
            self.stop()

    def _wait_until_ready(self, log: Path) -> None:
        give_up_at = time.monotonic() + START_LIMIT_S
        while True:
            try:
                psycopg.connect(host=str(self._socket_dir), user=SUPERUSER, dbname="postgres").close()
            except psycopg.OperationalError as error:
                if self._process.poll() is not None:
                    raise RefusedToStart(f"The embedded server ended while it started{_why(log)}; its log is {log}.") from error
                if time.monotonic() > give_up_at:
                    raise RefusedToStart(f"The embedded server was not ready in {START_LIMIT_S} s; its log is {log}.") from error
                time.sleep(0.02)
            else:
                return

    def _ensure_database(self) -> None:
        admin = sa.create_engine(self.url_of(SUPERUSER, "postgres"), poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            if connection.scalar(sa.text("SELECT count(*) FROM pg_database WHERE datname = :name"), {"name": DATABASE}) == 0:
                connection.exec_driver_sql(f"CREATE DATABASE {DATABASE}")
        with sa.create_engine(self.owner_url, poolclass=sa.NullPool).begin() as connection:
            ensure_roles(connection)
            ensure_login(connection)


def _ensure_cluster(cluster: Path, programs: Programs, lock: IO[str]) -> None:
    version = programs.run("postgres", "--version").split()[2].split(".")[0]
    if not (cluster / "PG_VERSION").exists():
        # Made beside its place and moved there whole: a run that was killed in the middle leaves nothing that looks finished.
        unfinished = cluster.with_name("postgres.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        programs.own(unfinished)
        programs.run(
            "initdb", "--pgdata", str(unfinished), "--username", SUPERUSER, "--auth", "trust", "--encoding", "UTF8",
            "--locale", "C", "--no-instructions", keeps_open=(lock.fileno(),),
        )  # fmt: skip
        unfinished.rename(cluster)
        sync_folder(cluster.parent)
    found = (cluster / "PG_VERSION").read_text().strip()
    if found != version:
        raise RefusedToStart(
            f"The data directory was made by PostgreSQL {found}, and this is {version}: export with the release that made it."
        )


def _launch(cluster: Path, socket_dir: Path, log: Path, programs: Programs, lock: IO[str]) -> psutil.Popen:
    import psutil

    settings = {**_SETTINGS, "unix_socket_directories": str(socket_dir)}
    command = [str(programs.bin / "postgres"), "-D", str(cluster)]
    command += [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]
    with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
        return psutil.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=environment(),
            umask=0o077,
            # Its own session: an interrupt at the terminal reaches the service alone, which then stops the server in order.
            start_new_session=True,
            pass_fds=(lock.fileno(),),
            user=programs.account.uid if programs.account else None,
            group=programs.account.gid if programs.account else None,
            extra_groups=() if programs.account else None,
        )


def _why(log: Path) -> str:
    """The last thing the server said before it ended. Its log holds no content."""
    lines = log.read_text("utf-8", "replace").splitlines()[-20:]
    said = [line.partition("FATAL:")[2].strip(" .") for line in lines if "FATAL:" in line]
    return f" ({said[-1]})" if said else ""


def _socket_dir(cluster: Path, programs: Programs) -> Path:
    if len(os.fsencode(cluster / SOCKET_NAME)) < SOCKET_PATH_MAX_BYTES:
        return cluster
    short = Path(tempfile.mkdtemp(prefix=SOCKET_DIR_PREFIX, dir=temporary()))
    programs.own(short)
    return short


def exit_in_order_at_sigterm() -> None:
    """Lets a process that does not handle SIGTERM run its exit handlers, this server's among them.

    A start in the main thread sees to it; a start in another thread cannot (signal(7)), so that process calls this itself.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
