"""``cache``: what a look-up in the response cache costs with a full scope of eligible entries, against one that is bypassed.

The app runs in this process with embedded storage and is asked through the SDK; kinds of look-ups take turns, so that a busy
machine slows all of them. Processor time is this process's (client, service, embedder), without PostgreSQL's.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmark.report import Picture, Report, Table, rounded
from benchmark.service import running, settings_for
from benchmark.stats import quantile
from coatcheck.domain.canonical import JsonObject
from coatcheck_client.client import AsyncCoatcheck

NAME = "cache"
KNOWN: dict[str, Any] = {
    "session": "", "sources": [], "model": "m", "instructions": "Be exact.", "tools": [], "settings": {"temperature": 0},
}  # fmt: skip
ANSWER_CHARS = 2_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--entries", type=int, default=1_000, help="eligible entries (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=200, help="look-ups of each kind (default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Fills one scope, then looks up in turns."""
    with tempfile.TemporaryDirectory(prefix="coatcheck-cache-") as temporary:
        return asyncio.run(_run(Path(temporary), options.entries, options.rounds))


async def _run(folder: Path, entries: int, rounds: int) -> Report:
    limits: dict[str, object] = {"response_cache_max_entries": entries, "response_cache_timeout_s": 60}
    settings = settings_for(folder / "data", response_cache=True, response_cache_semantic=True, **limits)
    async with running(settings) as service:
        stored_ms = await _fill(service.client, entries)
        took, cpu = await _look_up(service.client, entries, rounds)
        revisions = service.revisions
    figures = {
        kind: rounded(
            {"p50_ms": quantile(took[kind], 0.5), "p95_ms": quantile(took[kind], 0.95), "cpu_p50_ms": quantile(cpu[kind], 0.5)}, 2
        )
        for kind in took
    }
    stored = rounded({"p50_ms": quantile(stored_ms, 0.5), "p95_ms": quantile(stored_ms, 0.95)}, 2)
    results: JsonObject = {"lookup": dict(figures), "store": stored}
    rows = tuple((kind, quantile(took[kind], 0.5), quantile(took[kind], 0.95), quantile(cpu[kind], 0.5)) for kind in took)
    return Report(
        NAME,
        results,
        {"entries": entries, "rounds": rounds, "embedder": settings.embedder, "answer_chars": ANSWER_CHARS},
        revisions=revisions,
        tables=(Table(f"Look-ups, {entries:,} eligible entries", ("", "p50 ms", "p95 ms", "processor p50 ms"), rows),),
        picture=Picture("Look-ups", "ms", tuple(took), {"p50": [quantile(values, 0.5) for values in took.values()]}),
        notes=("``bypassed`` is authentication, limits and one statement: what every request costs.",),
    )


async def _fill(client: AsyncCoatcheck, entries: int) -> list[float]:
    scope = (await client.cache_lookup("nothing yet", **KNOWN)).scope
    took: list[float] = []
    for number in range(entries):
        started = perf_counter()
        kept = await client.cache_store(_asked(number), "x" * ANSWER_CHARS, scope=scope, semantic=True, **KNOWN)
        took.append(1_000 * (perf_counter() - started))
        if not kept.stored:
            raise RuntimeError(f"an answer was not stored: {kept.reason}")
    return took


async def _look_up(client: AsyncCoatcheck, entries: int, rounds: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    unknown = {name: value for name, value in KNOWN.items() if name != "model"}
    kinds: dict[str, tuple[str, Mapping[str, Any], str]] = {
        "bypassed": ("{}", unknown, "bypassed"),
        "hit, exact": ("{}", KNOWN, "hit-exact"),
        "miss, exact": ("No such question: {}", KNOWN, "miss"),
        "hit, by meaning": ("Please {}", {**KNOWN, "semantic": True}, "hit-semantic"),
        "miss, by meaning": ("{} Today?", {**KNOWN, "semantic": True}, "miss"),
        "ineligible": ("{}", {**KNOWN, "model": "another"}, "ineligible"),
    }
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    cpu: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(rounds):
        for kind, (form, known, outcome) in kinds.items():
            prompt = form.format(_asked(turn % entries))
            started, worked = perf_counter(), process_time()
            found = await client.cache_lookup(prompt, **known)
            took[kind].append(1_000 * (perf_counter() - started))
            cpu[kind].append(1_000 * (process_time() - worked))
            if found.outcome != outcome:
                raise RuntimeError(f"{kind}: {found.outcome} {found.reason}")
    return took, cpu


def _asked(number: int) -> str:
    return f"Which port does host number {number} use?"
