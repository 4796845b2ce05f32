"""``scan``: the integrity scan against raw COPY and SHA-256 of the same rows, its memory, and recall at scale.

The service runs as a process of its own, with the ``hashing`` embedder. It is filled through the public routes, started anew, and
measured; raw COPY reads the same rows of the same server, turn by turn with the scan. Filling takes minutes: ``--keep`` leaves the
populations in a folder, where the next run finds them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from uuid import UUID

import psycopg

from benchmark.bulk import Notes
from benchmark.processes import Served, cpu_s, peak_mib, reset_peak, resident_mib, serving
from benchmark.report import Cell, Picture, Report, Table, rounded
from benchmark.service import DEADLINE_S
from benchmark.stats import middle, quantile
from coatcheck.domain.canonical import JsonObject
from coatcheck_client.client import Coatcheck
from coatcheck_client.flows import Flow, Pause, Send, json_body, read
from coatcheck_client.operations import JSON
from coatcheck_client.wire import JobOut

NAME = "scan"
WINDOW_MESSAGES = 1_000
SESSION_SEGMENTS = 5_000
SEGMENT_CHARS = 1_000
"""As the records of the synthetic comparison have them."""
KEYS = "keys.json"
"""Written when a population is whole."""
POLL_S = 0.06
"""Seen late by half of this; asked for more often, the asking costs the service more than that."""
_RAW = "COPY (SELECT sha256, raw FROM segments WHERE tenant_id = '{tenant}') TO STDOUT (FORMAT binary)"


@dataclass(frozen=True, slots=True)
class Population:
    """Segments shared evenly by tenants: how fast they came in, and how fast they are found. Milliseconds."""

    tenants: int
    segments: int
    ingest_s: float | None
    """None where it was filled by an earlier run."""
    ready_s: float
    recall_ms: Sequence[float]
    recall_cpu_ms: float
    """Processor time of the service for one recall: what a busy machine does not stretch."""

    def as_json(self) -> JsonObject:
        times = {"recall_p50_ms": quantile(self.recall_ms, 0.5), "recall_p95_ms": quantile(self.recall_ms, 0.95)}
        times["recall_cpu_ms"] = self.recall_cpu_ms
        if self.ingest_s is not None:
            times["ingest_segments_per_s"] = self.segments / self.ingest_s
        return rounded(times | {"ready_s": self.ready_s}, 2)


@dataclass(frozen=True, slots=True)
class Scanned:
    """Medians over the rounds. Memory is that of the service's process alone, in MiB."""

    rows: int
    findings: int
    scan_s: float
    raw_s: float
    with_index_s: float
    loaded_mib: float
    peak_mib: float

    def as_json(self) -> JsonObject:
        return {"rows": self.rows, "findings": self.findings} | rounded(
            {
                "rows_per_s": self.rows / self.scan_s,
                "raw_rows_per_s": self.rows / self.raw_s,
                "ratio": self.raw_s / self.scan_s,
                "with_index_rows_per_s": self.rows / self.with_index_s,
                "with_index_ratio": self.raw_s / self.with_index_s,
                "loaded_mib": self.loaded_mib,
                "memory_above_loaded_mib": self.peak_mib - self.loaded_mib,
            },
            3,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--segments", type=int, default=20_000, help="in each population (default %(default)s)")
    parser.add_argument(
        "--tenants", type=int, nargs="+", default=[50, 1], help="populations: the segments shared by so many tenants"
    )
    parser.add_argument("--queries", type=int, default=300, help="recalls timed in each population (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="scans, each beside a raw COPY (default %(default)s)")
    parser.add_argument("--keep", type=Path, help="folder that keeps the filled data directories for the next run")
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> Report:
    """One data directory for each population; the scan is measured where one tenant owns the most."""
    populations: list[Population] = []
    scanned: Scanned | None = None
    for tenants in options.tenants:
        with _folder(options, tenants) as folder:
            settings = {"data_dir": str(folder / "data"), "allow_root_home": "true", "listen_port": "0", "log_level": "error"}
            settings |= {"embedder": "hashing", "reranker": "none"}
            keys, ingest_s = _filled(folder, settings, tenants, options)
            with serving(folder, settings) as served:
                times, cpu_ms = recall_ms(served, keys, Notes(options.seed).queries(options.queries))
                populations.append(Population(tenants, options.segments, ingest_s, served.ready_s, times, cpu_ms))
                if tenants == min(options.tenants):
                    scanned = scan(served, keys[-1], folder / "data", options.rounds)
    results: JsonObject = {f"tenants_{one.tenants}": one.as_json() for one in populations}
    if scanned is not None:
        results["scan"] = scanned.as_json()
    return Report(
        NAME,
        results,
        {"segments": options.segments, "segment_chars": SEGMENT_CHARS, "embedder": "hashing", "rounds": options.rounds},
        {"seed": options.seed},
        tables=_tables(populations, scanned),
        picture=_picture(scanned),
    )


@contextmanager
def _folder(options: argparse.Namespace, tenants: int) -> Iterator[Path]:
    if options.keep is None:
        with tempfile.TemporaryDirectory(prefix="coatcheck-scan-") as temporary:
            yield Path(temporary)
    else:
        folder = options.keep / f"{options.segments}-segments-{tenants}-tenants-seed-{options.seed}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield folder


def _filled(folder: Path, settings: dict[str, str], tenants: int, options: argparse.Namespace) -> tuple[list[str], float | None]:
    """The tenants' keys, and the seconds that filling took where this run did it."""
    kept = folder / KEYS
    if kept.exists():
        keys: list[str] = json.loads(kept.read_text(encoding="utf-8"))
        return keys, None
    with serving(folder, settings) as served:
        start = perf_counter()
        keys = populate(served, tenants, options.segments, options.seed)
        took = perf_counter() - start
    if options.keep is not None:
        kept.touch(mode=0o600)
        kept.write_text(json.dumps(keys), encoding="utf-8")
    return keys, took


def populate(served: Served, tenants: int, segments: int, seed: int) -> list[str]:
    """Fills the service and returns one key for each tenant."""
    keys = [served.api_key] if tenants == 1 else _make_tenants(served, tenants)
    share = segments // tenants
    for number, key in enumerate(keys):
        with Coatcheck(served.url, key) as client:
            for position, window in enumerate(Notes(seed + number).windows(share, SEGMENT_CHARS, WINDOW_MESSAGES)):
                session = f"notes-{position * WINDOW_MESSAGES // SESSION_SEGMENTS}"
                client.compact(window, session=session, format="openai-chat", deadline_s=DEADLINE_S)
    return keys


def recall_ms(served: Served, keys: Sequence[str], queries: Sequence[str]) -> tuple[list[float], float]:
    """Each query once, by the tenants in turn, one after the other; one before them for each tenant warms the service up.

    Returns the milliseconds of each, and the service's processor time for one in the mean.
    """
    clients = [Coatcheck(served.url, key) for key in keys]
    times: list[float] = []
    for client in clients:
        client.recall(queries[0])
    cpu_before_s = cpu_s(served.pid)
    for number, query in enumerate(queries):
        start = perf_counter()
        clients[number % len(clients)].recall(query)
        times.append((perf_counter() - start) * 1_000)
    cpu_ms = (cpu_s(served.pid) - cpu_before_s) * 1_000 / len(queries)
    for client in clients:
        client.close()
    return times, cpu_ms


def scan(served: Served, key: str, data_dir: Path, rounds: int) -> Scanned:
    """The scan of rows, the scan with the index, and raw COPY with SHA-256, in turn. Raises RuntimeError when a scan fails."""
    loaded = resident_mib(served.pid)
    reset_peak(served.pid)
    seconds: dict[str, list[float]] = {"rows": [], "raw": [], "index": []}
    with Coatcheck(served.url, key) as client, _superuser(data_dir) as connection:
        for _ in range(rounds):
            took, job = _timed_scan(client, index=False)
            seconds["rows"].append(took)
            took, rows = _raw_copy(connection, key)
            seconds["raw"].append(took)
            took, _ = _timed_scan(client, index=True)
            seconds["index"].append(took)
    if job.progress["segments"] != rows:
        raise RuntimeError(f"the scan saw {job.progress['segments']} rows and raw COPY {rows}: they do not compare")
    medians = {name: middle(values) for name, values in seconds.items()}
    return Scanned(rows, job.findings_total, medians["rows"], medians["raw"], medians["index"], loaded, peak_mib(served.pid))


def _timed_scan(client: Coatcheck, *, index: bool) -> tuple[float, JobOut]:
    start = perf_counter()
    job = client.run(_polled_scan(index))
    took = perf_counter() - start
    if job.status != "done":
        raise RuntimeError(f"the scan {job.status}: {job.error}")
    return took, job


def _polled_scan(index: bool) -> Flow[JobOut]:
    """The SDK's scan, asked after more often than a person would, so that the end is seen when it comes."""
    job = yield from read(Send("POST", "/v1/admin/scan", json_body({"index": index}), headers=JSON), JobOut)
    while job.status == "running":
        yield Pause(POLL_S)
        job = yield from read(Send("GET", f"/v1/admin/scan/{job.job_id}"), JobOut)
    return job


def _raw_copy(connection: psycopg.Connection, key: str) -> tuple[float, int]:
    """The floor: every row's hash and bytes by binary COPY, and SHA-256 over the bytes. Returns seconds and rows."""
    tenant = UUID(key.split("_")[1])  # a key names its tenant (design: data)
    start = perf_counter()
    rows = 0
    with connection.cursor() as cursor, cursor.copy(_RAW.format(tenant=tenant).encode()) as copy:
        copy.set_types(["text", "bytea"])
        for sha256, raw in copy.rows():
            if hashlib.sha256(raw).hexdigest() != sha256:
                raise RuntimeError("raw COPY read a row whose hash differs")
            rows += 1
    return perf_counter() - start, rows


def _superuser(data_dir: Path) -> psycopg.Connection:
    """A connection to the embedded server beside the service, past RLS. The fifth line of postmaster.pid names its socket."""
    socket_dir = (data_dir / "postgres" / "postmaster.pid").read_text(encoding="utf-8").splitlines()[4]
    return psycopg.connect(host=socket_dir, user="postgres", dbname="coatcheck", autocommit=True)


def _make_tenants(served: Served, tenants: int) -> list[str]:
    with Coatcheck(served.url, served.api_key) as operator:
        made = [operator.create_tenant(f"tenant-{number}") for number in range(tenants)]
    return [tenant.key for tenant in made if tenant.key is not None]


def _tables(populations: Sequence[Population], scanned: Scanned | None) -> tuple[Table, ...]:
    recalls: list[tuple[Cell, ...]] = [
        (
            f"{p.tenants} tenants",
            p.segments,
            quantile(p.recall_ms, 0.5),
            quantile(p.recall_ms, 0.95),
            p.recall_cpu_ms,
            None if p.ingest_s is None else p.segments / p.ingest_s,
        )
        for p in populations
    ]
    tables = [Table("Recall at scale", ("", "segments", "p50 ms", "p95 ms", "service CPU ms", "ingest segments/s"), tuple(recalls))]
    if scanned is not None:
        sides: tuple[tuple[Cell, ...], ...] = (
            ("raw COPY and SHA-256", scanned.rows / scanned.raw_s, 1.0, None),
            ("scan", scanned.rows / scanned.scan_s, scanned.raw_s / scanned.scan_s, scanned.peak_mib - scanned.loaded_mib),
            ("scan with index", scanned.rows / scanned.with_index_s, scanned.raw_s / scanned.with_index_s, None),
        )
        tables.append(Table("Integrity scan (medians)", ("", "rows/s", "of raw", "MiB above loaded"), sides))
    return tuple(tables)


def _picture(scanned: Scanned | None) -> Picture | None:
    if scanned is None:
        return None
    speeds = [scanned.rows / seconds for seconds in (scanned.raw_s, scanned.scan_s, scanned.with_index_s)]
    return Picture("Integrity scan", "rows/s", ("raw COPY and SHA-256", "scan", "scan with index"), {"median": speeds})
