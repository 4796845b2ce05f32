"""``start``: what ``coatcheck --help`` and ``coatcheck serve`` import, and the time until ready against the bare import."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmark.processes import command, imported_by, imported_in, seconds_of, serving
from benchmark.report import Picture, Report, Table, rounded
from benchmark.stats import middle
from coatcheck.domain.canonical import JsonObject, JsonValue

NAME = "start"
BARE = ("-c", "import fastapi, sqlalchemy, psycopg")
NOT_FOR_HELP = ("fastapi", "sqlalchemy", "numpy")
NOT_FOR_SERVE = ("torch", "qdrant_client", "mcp")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5, help="starts of each kind, interleaved (default %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Starts the service once on a fresh data directory, then again and again beside the bare import."""
    with tempfile.TemporaryDirectory(prefix="coatcheck-start-") as temporary:
        folder = Path(temporary)
        settings = {"data_dir": str(folder / "data"), "allow_root_home": "true", "listen_port": "0", "log_level": "error"}
        by_help = imported_by(command("--help"), folder)
        with serving(folder, settings) as served:
            first_s = served.ready_s
        seconds_of(BARE, folder)
        seconds: dict[str, list[float]] = {"bare import": [], "ready": [], "help": [], "bare python": []}
        for _ in range(options.rounds):
            seconds["bare import"].append(seconds_of(BARE, folder))
            with serving(folder, settings) as served:
                seconds["ready"].append(served.ready_s)
            seconds["bare python"].append(seconds_of(("-c", "pass"), folder))
            seconds["help"].append(seconds_of(command("--help"), folder))
        with serving(folder, settings, folder / "imports.log"):
            pass
        by_serve = imported_in(folder / "imports.log")
    medians = {name: middle(values) for name, values in seconds.items()}
    ratio = medians["ready"] / medians["bare import"]
    found = {"help": _found(NOT_FOR_HELP, by_help), "serve": _found(NOT_FOR_SERVE, by_serve)}
    results: JsonObject = {
        "help": rounded({"s": medians["help"], "bare_python_s": medians["bare python"]})
        | {"imported_against_rule": list[JsonValue](found["help"]), "modules": len(by_help)},
        "serve": rounded(
            {"ready_s": medians["ready"], "bare_import_s": medians["bare import"], "ratio": ratio, "first_start_s": first_s}
        )
        | {"imported_against_rule": list[JsonValue](found["serve"]), "modules": len(by_serve)},
    }
    table = Table(
        "Start (medians)",
        ("", "seconds", "against", "ratio", "modules", "imported against the rule"),
        (
            (
                "coatcheck --help",
                medians["help"],
                "bare python",
                medians["help"] / medians["bare python"],
                len(by_help),
                _listed(found["help"]),
            ),
            ("serve, ready", medians["ready"], "bare import", ratio, len(by_serve), _listed(found["serve"])),
            ("serve, first start", first_s, None, None, None, None),
        ),
    )
    picture = Picture("Start", "seconds", tuple(medians), {"median": list(medians.values())})
    return Report(NAME, results, {"rounds": options.rounds}, tables=(table,), picture=picture)


def _found(forbidden: Iterable[str], modules: set[str]) -> list[str]:
    return [name for name in forbidden if name in modules]


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
