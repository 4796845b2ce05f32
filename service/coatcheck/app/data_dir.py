"""The data directory: one process owns it, says where it serves, and keeps its secrets to itself."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from types import TracebackType

import portalocker
import structlog

from coatcheck.domain.errors import RefusedToStart
from coatcheck.ops.folders import make_private
from coatcheck.ops.unfinished import file_beside, remove_left_behind

log = structlog.get_logger(__name__)
LOCK_FILE = "lock"
RUN_FILE = "run.json"
KEY_FILE = "local.key"
PENDING_KEY_FILE = "local.key.pending"
ROOT_KEY_FILE = "root.key"


class DataDirectory:
    """A data directory under this process's lock, from ``__enter__`` to ``__exit__``."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self._lock: portalocker.Lock | None = None

    def __enter__(self) -> DataDirectory:
        """Makes the directory (0700) where there is none.

        Raises RefusedToStart where it cannot, where others get in, where it is somebody else's, or another process owns it.
        """
        lock = portalocker.Lock(
            self.path / LOCK_FILE, mode="a", timeout=0, flags=portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
        )
        try:
            for made in make_private(self.path):
                log.info("a folder above the data directory was made", folder=str(made))
            lock.acquire()
            (self.path / LOCK_FILE).chmod(0o600)
        except portalocker.exceptions.LockException as error:
            raise RefusedToStart(
                f"Another process owns the data directory {self.path}: {self._owner()}. "
                "Use that one, stop it, or name another folder with COATCHECK_DATA_DIR."
            ) from error
        except OSError as error:
            raise RefusedToStart(
                f"The data directory {self.path} cannot be used: {error.strerror}. "
                "Name a folder that this user may write to with COATCHECK_DATA_DIR."
            ) from error
        self._lock = lock
        remove_left_behind(self.path)  # a key may be in it
        self.forget_url()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.forget_url()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def publish_url(self, url: str) -> None:
        """Tells the CLI and the SDK on this machine where the service is."""
        with file_beside(self.path / RUN_FILE, 0o600) as temporary:
            temporary.write_text(json.dumps({"url": url, "pid": os.getpid()}), "utf-8")
            temporary.replace(self.path / RUN_FILE)

    def forget_url(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.path / RUN_FILE).unlink()

    def _owner(self) -> str:
        """What the process that holds the lock says of itself; it says nothing before it serves, nor while it stops."""
        try:
            content = json.loads((self.path / RUN_FILE).read_text("utf-8"))
            return f"process {content['pid']} serves on {content['url']}"
        except (OSError, ValueError, LookupError, TypeError):
            return "it is starting, stopping, or a command at work"

    @property
    def key_file(self) -> Path:
        """The local key: what the CLI and the SDK find on a fresh machine."""
        return self.path / KEY_FILE

    @property
    def pending_key_file(self) -> Path:
        """The same key before it counts."""
        return self.path / PENDING_KEY_FILE

    @property
    def root_key_file(self) -> Path:
        return self.path / ROOT_KEY_FILE

    @property
    def journal(self) -> Path:
        return self.path / "journal"

    @property
    def index(self) -> Path:
        return self.path / "index"
