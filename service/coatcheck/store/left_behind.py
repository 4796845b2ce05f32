"""What a service that died left behind of its server: processes, which are ended first, and then their lock files and sockets.

A server's processes are recognised by their folder, not by the number in a lock file: after a reboot that number may be
anybody's, and in a container whose first process reaps nobody a dead server keeps its number. PostgreSQL would refuse to start
over either, and, asked to stop, signal a stranger. Its own guard, the lock files, is lifted only when nothing is left running.

That nothing is, the kernel says: every process that works on the cluster, initdb too, inherits one open, locked file from the
service that starts it. So one that was forked a moment before its service was killed, and shows by nothing yet what it is
about to become, is waited for like the others.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

import portalocker

from coatcheck.domain.errors import RefusedToStart

if TYPE_CHECKING:
    import psutil

STOP_LIMIT_S = 30
"""For each way of ending a process."""
GIVE_UP_S = 2 * STOP_LIMIT_S
"""For what ends by itself; after the first half of it by force."""
LOCK_NAME = "postgres.lock"
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_DIR_PREFIX = "coatcheck-"
_POLL_S = 0.02


def take_over(cluster: Path) -> IO[str]:
    """Returns when nothing works on this cluster any more: the locked file, for whatever is started on it to inherit.

    Raises RefusedToStart when something goes on holding it. Only for the holder of the data directory's lock.
    """
    flags = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
    lock = portalocker.Lock(cluster.with_name(LOCK_NAME), mode="a", timeout=0, flags=flags)
    give_up_at = time.monotonic() + GIVE_UP_S
    while True:
        running = _running(cluster)
        if not running:
            with contextlib.suppress(portalocker.exceptions.LockException):
                held: IO[str] = lock.acquire()
                break
        _end(running, cluster, by_force=time.monotonic() > give_up_at - STOP_LIMIT_S)
        if time.monotonic() > give_up_at:
            raise RefusedToStart(f"Another process works on the database in {cluster}, and does not end.")
        time.sleep(_POLL_S)
    _clear_away(cluster)
    return held


def temporary() -> Path:
    """Where a short path for a socket is found."""
    return Path("/tmp")  # tempfile's own may be long, and closed to others


def shut_down(process: psutil.Process) -> None:
    """Fast, then immediate, then none at all: after either of the last two the next start recovers from the log."""
    import psutil

    for ending in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(ending)
        if _is_gone_within(process, STOP_LIMIT_S):
            return


def _running(cluster: Path) -> list[psutil.Process]:
    import psutil

    return [process for process in psutil.process_iter(["name"]) if _serves(process, cluster)]


def _end(running: list[psutil.Process], cluster: Path, *, by_force: bool) -> None:
    """Shuts the server down. Its own processes end with it, or soon after it where it was killed; or else are ended."""
    import psutil

    lines = _lock_lines(cluster)
    for process in running:
        if lines and lines[0] == str(process.pid):
            shut_down(process)
        elif by_force:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def _clear_away(cluster: Path) -> None:
    lines = _lock_lines(cluster)
    socket_dir = Path(lines[4]) if len(lines) > 4 else cluster
    if socket_dir.name.startswith(SOCKET_DIR_PREFIX) and socket_dir.parent == temporary():
        shutil.rmtree(socket_dir, ignore_errors=True)
    for left in (cluster / "postmaster.pid", cluster / SOCKET_NAME, cluster / f"{SOCKET_NAME}.lock"):
        left.unlink(missing_ok=True)


def _lock_lines(cluster: Path) -> list[str]:
    """PostgreSQL's lock file: the process, the folder, the start, the port, the socket's folder, ...

    Nothing of what it says is relied upon: after a power cut it may say anything.
    """
    try:
        return (cluster / "postmaster.pid").read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []


def _serves(process: psutil.Process, cluster: Path) -> bool:
    import psutil

    try:
        return process.info["name"] == "postgres" and Path(process.cwd()) == cluster
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False


def _is_gone_within(process: psutil.Process, limit_s: float) -> bool:
    """Whether it ends in time. One that only waits for its parent to take notice of its end has ended."""
    import psutil

    give_up_at = time.monotonic() + limit_s
    while time.monotonic() < give_up_at:
        try:
            if isinstance(process, psutil.Popen):
                if process.poll() is not None:
                    return True
            elif process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False
