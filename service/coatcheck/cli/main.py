"""The front door of the command line: the commands, and what an error becomes.

Only typer is imported here and in the command modules; everything else is imported inside the command that needs it, so that
``coatcheck --help`` answers at once. Exit codes: 0 fine, 1 a finding or a failure, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from coatcheck.cli import (
    access,
    auditing,
    caching,
    compacting,
    failures,
    fp8,
    gpu,
    integrity,
    limits,
    machine,
    output,
    people,
    reading,
    retention,
    sessions,
    trust,
)
from coatcheck.cli.demo import command as demo

INTERRUPTED = 130

app = typer.Typer(
    name="coatcheck",
    help="Hand in the middle of an agent's conversation, carry a small ticket, get the exact text back.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(machine.serve)
app.command()(demo.demo)
app.command()(compacting.compact)
app.command()(reading.recall)
app.command()(reading.show)
app.command()(reading.window)
app.command()(integrity.scan)
app.command()(integrity.repair)
app.command()(integrity.reconcile)
app.command()(integrity.redact)
app.add_typer(access.keys, name="keys")
access.tenants.command(name="limits")(limits.limits)
app.add_typer(access.tenants, name="tenants")
app.add_typer(people.principals, name="principals")
app.add_typer(people.teams, name="teams")
app.add_typer(trust.issuers, name="issuers")
app.add_typer(trust.delegations, name="delegations")
app.command()(auditing.audit)
app.add_typer(caching.cache, name="cache")
sessions.sessions.command(name="retention")(retention.retention)
app.add_typer(sessions.sessions, name="sessions")
app.command(name="export")(sessions.export)
app.command(name="import")(sessions.import_)
app.command()(machine.migrate)
app.command()(machine.restore)
app.add_typer(machine.models, name="models")
gpu.gpu.command(name="quantize")(fp8.quantise)
gpu.gpu.command(name="audit")(fp8.audit)
app.add_typer(gpu.gpu, name="gpu")
app.command()(machine.doctor)
app.command()(machine.mcp)


@app.callback()
def front_door(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.", callback=_print_version)] = False,
) -> None:
    """The options of the whole command."""


def main() -> None:
    """Runs the command line and exits."""
    output.prepare_streams()
    try:
        app()
    except SystemExit as ended:
        # What typer makes of an interrupt, without a word. (A pipe whose reader has gone it ends quietly, with 1.)
        if ended.code == INTERRUPTED:
            output.warn("interrupted")
        raise
    except Exception as error:
        detail = failures.failure_text(error)
        if detail is None:
            raise
        output.warn(detail)
        sys.exit(1)


def _print_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        output.say(f"coatcheck {importlib.metadata.version('coatcheck')}")
        raise typer.Exit
