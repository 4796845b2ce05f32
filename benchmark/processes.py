"""The command and the service as processes of their own: what they import, when they are ready, how much memory they hold."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

import httpx

from coatcheck_client.discovery import local_key, running_url

READY_WITHIN_S = 120.0
_POLL_S = 0.005
_COMMAND = "import sys; from coatcheck.cli import main; sys.argv[0] = 'coatcheck'; sys.exit(main())"
_IMPORTED = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Served:
    """A service that is ready. ``ready_s`` counts from the start of its process."""

    url: str
    api_key: str
    pid: int
    ready_s: float


def seconds_of(arguments: Sequence[str], folder: Path) -> float:
    """Runs ``python ARGUMENTS`` to its end. Raises CalledProcessError when it fails."""
    start = perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, capture_output=True, env=_environment(folder))
    return perf_counter() - start


def command(*arguments: str) -> list[str]:
    """``coatcheck ARGUMENTS`` as arguments of this interpreter."""
    return ["-c", _COMMAND, *arguments]


def imported_by(arguments: Sequence[str], folder: Path) -> set[str]:
    """The modules that ``python ARGUMENTS`` imports, by -X importtime."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env=_environment(folder),
    )
    return set(_IMPORTED.findall(done.stderr))


@contextmanager
def serving(folder: Path, settings: Mapping[str, str], import_log: Path | None = None) -> Iterator[Served]:
    """``coatcheck serve --embedded`` on a data directory, ready; asked to stop at the end.

    The settings go in by a file: its environment is this process's but for the bytecode's place. Raises RuntimeError when it
    ends, or does not become ready in time.
    """
    (folder / "settings.env").write_text(
        "".join(f"COATCHECK_{name.upper()}={value}\n" for name, value in settings.items()), encoding="utf-8"
    )
    data_dir = Path(settings["data_dir"])
    options = ["-X", "importtime"] if import_log is not None else []
    log = import_log or folder / "serve.log"
    start = perf_counter()
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, *options, *command("serve", "--embedded", "--env-file", "settings.env")],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=_environment(folder),
        )
        try:
            url = _ready(process, data_dir, log)
            yield Served(url, local_key(data_dir) or "", process.pid, perf_counter() - start)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def imported_in(import_log: Path) -> set[str]:
    """The modules named in a log of -X importtime."""
    return set(_IMPORTED.findall(import_log.read_text(encoding="utf-8", errors="replace")))


def resident_mib(pid: int) -> float:
    """The process's resident memory now."""
    return _status_mib(pid, "VmRSS")


def peak_mib(pid: int) -> float:
    """The largest resident memory since ``reset_peak``, or since the process began."""
    return _status_mib(pid, "VmHWM")


def reset_peak(pid: int) -> None:
    """Forgets the peak (proc(5), clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def cpu_s(pid: int) -> float:
    """Seconds of processor time that the process has used, in user and kernel mode (proc(5), stat)."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _environment(folder: Path) -> dict[str, str]:
    """As here, with compiled modules kept in the folder: from the second start on nothing is compiled, as where a user runs it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def _ready(process: subprocess.Popen[bytes], data_dir: Path, log: Path) -> str:
    limit = perf_counter() + READY_WITHIN_S
    with httpx.Client(timeout=5) as client:
        while perf_counter() < limit:
            if process.poll() is not None:
                raise RuntimeError(f"serve ended with {process.returncode}: {log.read_text(errors='replace')[-500:]}")
            url = running_url(data_dir)
            if url is not None and _answers(client, url):
                return url
            sleep(_POLL_S)
    raise RuntimeError(f"serve was not ready within {READY_WITHIN_S:.0f} s")


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        # A run.json of an earlier start, or a socket that does not listen yet.
        return False


def _status_mib(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1_024
