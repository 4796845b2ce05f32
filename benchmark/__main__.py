"""``python -m benchmark NAME [--json [OUT]] [--plot OUT.png]``; ``all`` runs what needs neither data nor a model server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, cast

from rich.console import Console

from benchmark.report import Report, json_text, show
from coatcheck.ops import garbage

BENCHMARKS = {
    "qa": "the synthetic comparison: full history, handoff alone, handoff and recall",
    "recall": "evidence recall on labelled conversations (--data FILE)",
    "compaction": "planner throughput by stage; a whole compaction against the bare encode",
    "scan": "integrity scan against raw COPY and SHA-256; recall latency at scale",
    "cache": "look-ups in the response cache with a full scope of eligible entries",
    "isolation": "what keeping people apart costs: SQL, the index's legs, a whole recall",
    "reduction": "how far a compressor shortens transcripts, and what the fact guard lets through (--model FOLDER --data FILE ...)",
    "worker": "the model worker against the bare reranker, in pairs",
    "fp8": "a GLiClass router in BF16 and in W8A8 on the same examples: answers, times, memory",
    "nvfp4": "what a packed KV cache saves in pages and pools, and costs in attention",
    "offload": "rows from the CPU with passes overlapping against one after the other, over modelled streams",
    "start": "what the command and the service import, and the time until ready",
}
_NEED_DATA = ("recall", "reduction")
_STDOUT = Path("-")
_PAGE_WIDTH = 132
"""Where nobody watches a terminal."""


class Benchmark(Protocol):
    """What a module of this package offers to the runner."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace) -> Report: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what is named, prints its tables, and writes what was asked for."""
    first, rest = _parser().parse_known_args(arguments)
    names = [name for name in BENCHMARKS if name not in _NEED_DATA] if first.name == "all" else [first.name]
    runs = [(name, _load(name)) for name in names]
    options = {name: _options_of(name, module, [] if first.name == "all" else rest) for name, module in runs}
    if first.name == "all" and rest:
        _parser().error(f"unrecognized arguments: {' '.join(rest)}")
    if first.plot is not None and find_spec("matplotlib") is None:
        print("--plot needs matplotlib: install the extra 'bench'.", file=sys.stderr)
        return 2
    out = sys.stderr if first.json == _STDOUT else sys.stdout
    console = Console(file=out, width=None if out.isatty() else _PAGE_WIDTH)
    for name, module in runs:
        console.rule(f"{name}: {BENCHMARKS[name]}", align="left")
        report = module.run(options[name])
        show(report, console)
        _write(report, first, name if first.name == "all" else None)
    if first.name == "all":
        console.print(f"Not run without data: {', '.join(_NEED_DATA)}.")
    return 0


def _write(report: Report, options: argparse.Namespace, suffix: str | None) -> None:
    json_out, plot_out = _with_suffix(options.json, suffix), _with_suffix(options.plot, suffix)
    if options.json == _STDOUT:
        sys.stdout.write(json_text(report))
    elif json_out is not None:
        json_out.write_text(json_text(report), encoding="utf-8")
    if plot_out is not None and report.picture is not None:
        from benchmark.plots import draw

        draw(report.picture, plot_out)


def _with_suffix(path: Path | None, suffix: str | None) -> Path | None:
    return path if path is None or suffix is None else path.with_stem(f"{path.stem}-{suffix}")


def _load(name: str) -> Benchmark:
    return cast(Benchmark, import_module(f"benchmark.{name}"))


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:12}{purpose}" for name, purpose in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmark",
        allow_abbrev=False,
        description=f"{__doc__}\n\n{listed}\n\nNAME --options shows the options of one benchmark.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=[*BENCHMARKS, "all"], metavar="NAME")
    parser.add_argument(
        "--json",
        type=Path,
        nargs="?",
        const=_STDOUT,
        metavar="OUT",
        help="write the results as JSON; without OUT to standard output, and the tables to standard error",
    )
    parser.add_argument("--plot", type=Path, metavar="OUT.png", help="draw the results (needs the extra 'bench')")
    return parser


def _options_of(name: str, module: Benchmark, arguments: Sequence[str]) -> argparse.Namespace:
    """A benchmark's own options; only its own module is imported for them."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmark {name}", description=BENCHMARKS[name], add_help=False, allow_abbrev=False
    )
    parser.add_argument("--options", action="help", help="show these and exit")
    module.add_arguments(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    garbage.settle()  # as the service is
    sys.exit(main())
