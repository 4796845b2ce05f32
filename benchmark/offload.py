"""``offload``: rows from the CPU with passes overlapping, against the same work one pass after the other.

Nothing here is a GPU's: streams are modelled and executed by threads, a forward is a sleep. What is measured is the connector:
what it costs a pass of processor time, and whether passes overlap as far as its depth lets them. Every run is compared bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from contextlib import ExitStack
from time import perf_counter, process_time

import numpy as np

from benchmark.report import Picture, Report, Table, rounded
from benchmark.stats import middle
from coatcheck.domain.canonical import JsonObject
from coatcheck.gpu.offload import Offload
from coatcheck.gpu.offload.connector import STAGE
from coatcheck.gpu.offload.modelled import Array, ModelledStreams, memory
from coatcheck.gpu.offload.pump import Pump
from coatcheck.ops.progress import ProgressBoard, Stage

NAME = "offload"
SEED = 7
WIDTH = 64
TABLE_ROWS = 50_000
DEPTHS = (1, 2, 8)
LIMIT_S = 60.0
ONE_AFTER_THE_OTHER = "one after the other"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--passes", type=int, default=24, help="passes of each run (default %(default)s)")
    parser.add_argument("--tokens", type=int, default=8_192, help="tokens of each pass (default %(default)s)")
    parser.add_argument("--forward-ms", type=float, default=5.0, help="how long a forward takes (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind, in turns (default %(default)s)")


class _Work:
    """The same for each kind of run: a table, the passes' tokens, a forward that takes its time."""

    def __init__(self, passes: int, tokens: int, forward_s: float) -> None:
        random = np.random.default_rng(SEED)
        self.table = random.standard_normal((TABLE_ROWS, WIDTH), dtype=np.float32)
        self.batches = [random.integers(0, TABLE_ROWS, tokens) for _ in range(passes)]
        self.forward_s = forward_s

    def compute(self, inputs: Array, rows: Array) -> None:
        np.take(self.table, inputs, axis=0, out=rows)

    def forward(self, rows: Array, read: list[str]) -> None:
        time.sleep(self.forward_s)
        read.append(hashlib.sha256(rows.tobytes()).hexdigest())


def run(options: argparse.Namespace) -> Report:
    """Takes turns between the kinds, so that a busy machine slows all of them."""
    work = _Work(options.passes, options.tokens, options.forward_ms / 1_000)
    kinds = [ONE_AFTER_THE_OTHER, *(f"depth {depth}" for depth in DEPTHS)]
    wall: dict[str, list[float]] = {kind: [] for kind in kinds}
    cpu: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        expected: list[str] = []
        for kind, depth in zip(kinds, (None, *DEPTHS), strict=True):
            started, worked = perf_counter(), process_time()
            read = _one_after_the_other(work) if depth is None else _overlapping(work, depth)
            wall[kind].append(1_000 * (perf_counter() - started) / options.passes)
            cpu[kind].append(1_000 * (process_time() - worked) / options.passes)
            expected = expected or read
            if read != expected:
                raise RuntimeError(f"{kind}: a pass did not read its own rows")
    walls = {kind: middle(values) for kind, values in wall.items()}
    figures: JsonObject = {
        kind: rounded({"wall_ms_per_pass": walls[kind], "cpu_ms_per_pass": middle(cpu[kind])}, 3) for kind in kinds
    }
    rows = tuple((kind, walls[kind], middle(cpu[kind]), walls[kind] / walls[ONE_AFTER_THE_OTHER]) for kind in kinds)
    settings: JsonObject = {
        "passes": options.passes, "tokens": options.tokens, "forward_ms": options.forward_ms, "rounds": options.rounds,
    }  # fmt: skip
    return Report(
        NAME,
        figures,
        settings,
        corpus={"seed": SEED, "table_rows": TABLE_ROWS, "width": WIDTH},
        tables=(Table("A pass (medians)", ("", "wall ms", "processor ms", "wall, of one after the other"), rows),),
        picture=Picture("A pass", "ms", tuple(kinds), {"wall": [walls[kind] for kind in kinds]}),
        notes=(
            "Modelled streams, a forward that sleeps: nothing here is a figure of a GPU.",
            "Every pass of every run read its own rows, bit for bit.",
        ),
    )


def _one_after_the_other(work: _Work) -> list[str]:
    read: list[str] = []
    rows = np.empty((len(work.batches[0]), WIDTH), np.float32)
    target = np.empty_like(rows)
    for tokens in work.batches:
        work.compute(tokens, rows)
        np.copyto(target, rows)
        work.forward(target, read)
    return read


def _overlapping(work: _Work, depth: int) -> list[str]:
    streams, read, tokens = ModelledStreams(), list[str](), len(work.batches[0])
    preparation, model = streams.stream("preparation"), streams.stream("model")
    board = ProgressBoard([Stage(STAGE, True, LIMIT_S)])
    offload = Offload(streams, lambda: memory(tokens, (WIDTH,)), work.compute, board, depth=depth, scheduler_depth=depth)
    inputs, target = np.zeros(tokens, np.int64), np.zeros((tokens, WIDTH), np.float32)
    with ExitStack() as stack:
        stack.enter_context(Pump([preparation]))
        stack.enter_context(Pump([model]))
        offload.start()
        stack.callback(offload.close)
        for batch in work.batches:
            preparation.put_in(("prepare",), lambda batch=batch: np.copyto(inputs, batch))  # type: ignore[misc]
            job = offload.submit(inputs, target, written_on=preparation, consumer=model, limit_s=LIMIT_S)
            model.put_in(("forward",), lambda: work.forward(target, read))
        offload.result(job)
        while model.operations:
            time.sleep(0.000_1)
    return read
