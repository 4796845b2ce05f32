"""A served data directory whose process dies, at a named point or at any moment, and is started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.folders import open_folder

COATCHECK = [sys.executable, "-c", "from coatcheck.cli import main; main()"]
START_LIMIT_S = 60
DEATH_LIMIT_S = 60
ROOT = Path(__file__).parents[2]


@contextmanager
def service(**environment: str) -> Iterator[Service]:
    """A service in a folder of its own, which goes with it. A test that fails says what the service said."""
    with open_folder() as folder:
        one = Service(folder, **environment)
        try:
            yield one
            one.close()
        except BaseException as error:
            error.add_note(f"The service said:\n{one.said()}")
            one.end()
            raise


class Service:
    """The process, its data directory, and what it says. ``environment`` holds settings for every start."""

    COMMAND: tuple[str, ...] = tuple(COATCHECK)
    SERVE: tuple[str, ...] = ("serve", "--embedded", "--port", "0")

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.log = folder / "serve.log"
        quick = {"COATCHECK_EMBEDDER": "hashing", "COATCHECK_RERANKER": "none", "COATCHECK_LOG_LEVEL": "warning"}
        self._environment = {**quick, "COATCHECK_DATA_DIR": str(self.data_dir), "COATCHECK_ALLOW_ROOT_HOME": "true", **environment}
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    @property
    def environment(self) -> dict[str, str]:
        """For this and for any other process that is to find the service."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("COATCHECK_")}
        # As an installation has it: what was started once is compiled, be it that this environment keeps no bytecode.
        own.pop("PYTHONDONTWRITEBYTECODE", None)
        bytecode = {"PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", str(self.folder / "bytecode"))}
        return {**own, **bytecode, **self._environment, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(self, crash_points: str | None = None, **environment: str) -> float | None:
        """Starts and waits for /readyz. Returns the seconds that took; None when the process died of its crash point before."""
        started = time.monotonic()
        process = self.begin(crash_points, **environment)
        while time.monotonic() - started < START_LIMIT_S:
            if process.poll() is not None:
                assert crash_points is not None, self.said()
                assert process.returncode == -signal.SIGKILL, self.said()
                return None
            if self._is_ready():
                return time.monotonic() - started
            time.sleep(0.02)
        raise AssertionError(f"not ready in {START_LIMIT_S} s: {self.said()}")

    def kept_waiting_s(self) -> float:
        """How long the process was ready to run and others ran in its place (proc(5)); 0 where the system does not tell."""
        assert self._process is not None
        try:
            return int(Path(f"/proc/{self._process.pid}/schedstat").read_text("ascii").split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    def begin(self, crash_points: str | None = None, **environment: str) -> subprocess.Popen[bytes]:
        """Starts, and does not wait."""
        armed = {"COATCHECK_TEST_CRASH_POINT": crash_points} if crash_points is not None else {}
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [*self.COMMAND, *self.SERVE],
                env={**self.environment, **armed, **environment}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        return self._process

    def kill(self) -> None:
        """As a crash: nothing is flushed, nobody is told."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def dies(self) -> None:
        """Waits until the process met its crash point."""
        assert self._process is not None
        assert self._process.wait(DEATH_LIMIT_S) == -signal.SIGKILL

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def terminate(self) -> None:
        """Asks it to stop, and does not wait."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def ended(self, within_s: float) -> int:
        """The exit status, once it has one."""
        assert self._process is not None
        return self._process.wait(within_s)

    def close(self) -> None:
        """Stops it in order, so that its PostgreSQL goes with it."""
        if self._process is None:
            return
        if self._process.poll() is not None:  # what a killed one left behind goes with the next that stops in order
            self.start()
        self.terminate()
        self.ended(30)

    def end(self) -> None:
        """By force."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def said(self) -> str:
        """The last of what it wrote, and of what its PostgreSQL did."""
        logs = [path for path in (self.log, self.data_dir / "postgres.log") if path.exists()]
        return "\n".join(path.read_text("utf-8", "replace")[-4_000:] for path in logs)

    def client(self) -> httpx.Client:
        """With the local key."""
        key = (self.data_dir / "local.key").read_text("ascii").strip()
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {key}"}, timeout=30)

    def beside(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Another Python process, with the same environment."""
        with open(self.log.with_name("beside.log"), "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env=self.environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def _is_ready(self) -> bool:
        assert self._process is not None
        try:
            said = json.loads((self.data_dir / "run.json").read_text("utf-8"))
            if said["pid"] != self._process.pid:
                return False
            self.url = said["url"]
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except (FileNotFoundError, ValueError, httpx.TransportError):
            return False


def left_pending(http: httpx.Client, body: dict[str, Any]) -> httpx.Response:
    """Hands a window in and does not wait until it is projected; comes again where the machine had no time to begin with it."""
    give_up_at = time.monotonic() + START_LIMIT_S
    while True:
        answer = http.post("/v1/compactions", json=body, headers={"Coatcheck-Deadline": "1"})
        if not answer.json().get("type", "").endswith(":overloaded") or time.monotonic() > give_up_at:
            return answer


def settled(service: Service, limit_s: float = 60) -> dict[str, Any]:
    """Waits until nothing is owed; what a scan of rows and points finds then."""
    give_up_at = time.monotonic() + limit_s
    with service.client() as http:
        while True:
            queue = http.get("/readyz?verbose").json()["queue"]
            if not queue["pending"]:
                break
            assert time.monotonic() < give_up_at, queue
            time.sleep(0.2)
        assert queue["quarantined"] == 0
        job = http.post("/v1/admin/scan", json={"index": True}).json()
        while job["status"] == "running":
            time.sleep(0.1)
            job = http.get(f"/v1/admin/scan/{job['job_id']}").json()
    assert job["status"] == "done", job
    scanned: dict[str, Any] = job
    return scanned
