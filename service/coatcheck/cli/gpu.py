"""``coatcheck gpu``: what the accelerated runtime has, and what it will need."""

from __future__ import annotations

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

gpu = typer.Typer(help="The accelerated runtime: what it has and what it will need.", no_args_is_help=True, rich_markup_mode=None)


@gpu.command(name="status")
def gpu_status(as_json: AsJson = False) -> None:
    """Say what the accelerated runtime lacks on this machine. Exits with 1 where something is missing."""
    from coatcheck.cli import checks

    missing = checks.missing_for_gpu()
    found = "The accelerated runtime has what it needs."
    output.show({"available": not missing, "missing": missing}, as_json, *([f"Missing: {line}" for line in missing] or [found]))
    if missing:
        raise typer.Exit(1)
