"""``worker``: the model worker against the bare reranker, on the same inputs, in pairs; and what twenty candidates take."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter, process_time
from uuid import UUID

from benchmark.report import Report, Table, rounded
from coatcheck.domain.ports import Reranker
from coatcheck.identity.scopes import tenant_scope
from coatcheck.memory.recall import RERANK_CANDIDATES
from coatcheck.memory.reranking import PASSAGE_CHARS
from coatcheck.models import build_reranker
from coatcheck.models.reranking import RerankWorker
from coatcheck.ops.progress import ProgressBoard, standard_stages

NAME = "worker"
QUERY = "which port does the staging gateway answer on since the migration"
_SENTENCE = "Candidate {n}: the gateway of the staging host was moved, its port is {port} and the old one is closed. "
_LIMIT_S = 600.0

Times = list[tuple[float, float]]
"""Seconds of the clock and of the processor, for each call."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pairs", type=int, default=30, help="calls of each kind, in turns (default %(default)s)")
    parser.add_argument("--reranker", default="auto", help="as COATCHECK_RERANKER (default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Without a reranker nothing is measured, and the report says so."""
    built = build_reranker(options.reranker)
    if built.model is None:
        return Report(NAME, {}, {}, {}, {}, (), None, (f"Not measured: no reranker, {built.reason}.",))
    bare, worked = asyncio.run(_measure(built.model, options.pairs))
    ratios = [one[1] / other[1] for one, other in zip(worked, bare, strict=True)]
    walls = [one[0] / other[0] for one, other in zip(worked, bare, strict=True)]
    figures = {
        "bare_wall_ms": median(wall for wall, _ in bare) * 1_000,
        "bare_cpu_ms": median(cpu for _, cpu in bare) * 1_000,
        "worker_wall_ms": median(wall for wall, _ in worked) * 1_000,
        "worker_cpu_ms": median(cpu for _, cpu in worked) * 1_000,
        "wall_ratio": median(walls),
        "cpu_ratio": median(ratios),
    }
    rows = (
        ("bare", figures["bare_wall_ms"], figures["bare_cpu_ms"]),
        ("worker", figures["worker_wall_ms"], figures["worker_cpu_ms"]),
        ("worker / bare, median of pairs", figures["wall_ratio"], figures["cpu_ratio"]),
    )
    return Report(
        NAME,
        rounded(figures),
        {"pairs": options.pairs, "candidates": RERANK_CANDIDATES, "passage_chars": PASSAGE_CHARS},
        {},
        {"reranker": built.model.revision},
        (Table(f"Scoring {RERANK_CANDIDATES} passages", ("", "wall ms", "processor ms"), rows),),
        None,
        (),
    )


async def _measure(reranker: Reranker, pairs: int) -> tuple[Times, Times]:
    passages = [(_SENTENCE.format(n=n, port=9_000 + n) * 20)[: PASSAGE_CHARS - n] for n in range(RERANK_CANDIDATES)]
    worker = RerankWorker(reranker, ProgressBoard(standard_stages(_LIMIT_S)))
    scope = tenant_scope(UUID(int=1))

    async def through_worker() -> object:
        return await worker.score(scope, QUERY, passages, _LIMIT_S)

    async def bare() -> object:
        return reranker.score(QUERY, passages)

    await bare()
    await through_worker()
    times: tuple[Times, Times] = ([], [])
    for _ in range(pairs):
        times[0].append(await _timed(bare))
        times[1].append(await _timed(through_worker))
    await worker.close()
    return times


async def _timed(call: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    wall, cpu = perf_counter(), process_time()
    await call()
    return perf_counter() - wall, process_time() - cpu
