"""What works on this machine: ``serve``, ``migrate``, ``restore``, ``models``, ``doctor``, ``mcp``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

if TYPE_CHECKING:
    from coatcheck.models.cards import Card

models = typer.Typer(help="What the pipeline's models are and whether they are here.", no_args_is_help=True, rich_markup_mode=None)


def serve(
    embedded: Annotated[bool, typer.Option("--embedded", help="PostgreSQL and the index inside the data directory.")] = False,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="The port to listen on; 0 takes a free one.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="The data directory.")] = None,
    env_file: Annotated[Path | None, typer.Option(help="A file of settings, as COATCHECK_ENV_FILE names one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Serve until SIGTERM.

    Says on stdout where, once it does; the log goes to stderr.
    """
    import os
    import threading

    from coatcheck.ops import garbage

    garbage.look_seldom()
    from coatcheck.app.serve import serve as serve_app
    from coatcheck.cli import connection
    from coatcheck.settings import load

    given = {"host": host, "listen_port": port, "data_dir": data_dir, "embedded": embedded or None}
    settings = load(None, env_file, **{name: value for name, value in given.items() if value is not None})
    connection.say_what_is_not_read()
    threading.Thread(target=_announce, args=(settings.data_dir, os.getpid(), as_json), daemon=True).start()
    serve_app(settings)


def migrate(as_json: AsJson = False) -> None:
    """Bring a database to this release's schema.

    The database is the one of COATCHECK_MIGRATION_DATABASE_URL; an embedded one migrates itself.
    """
    from coatcheck.domain.errors import RefusedToStart
    from coatcheck.settings import load
    from coatcheck.store.migrate import migrate as migrate_database

    url = load().migration_database_url
    if url is None:
        raise RefusedToStart("Set COATCHECK_MIGRATION_DATABASE_URL, the owner's login. An embedded database migrates itself.")
    changed = migrate_database(url.get_secret_value())
    output.show({"changed": changed}, as_json, "Migrated." if changed else "Nothing to do.")


def restore(as_json: AsJson = False) -> None:
    """Erase again after restoring a backup.

    Replays the erasure journal. Run it while nothing serves.
    """
    import asyncio

    from coatcheck.app.offline import restore as replay
    from coatcheck.cli import connection

    erased = asyncio.run(replay(connection.local_settings()))
    output.show({"erased_again": erased}, as_json, f"{output.counted(erased, 'erasure')} done again.")


@models.command(name="status")
def models_status(as_json: AsJson = False) -> None:
    """Say for each stage which model it has, from where, or what is missing."""
    from coatcheck.cli import checks

    found = checks.models()
    output.show_table(
        [check.as_dict() for check in found], as_json, ("stage", "state", "detail"), ((c.name, c.state, c.detail) for c in found)
    )


@models.command(name="list")
def models_list(as_json: AsJson = False) -> None:
    """List the models that the settings name.

    Source, revision, licence, and the SHA-256 of the weights. Asks no hub.
    """
    _show_cards(as_json, pull=False)


@models.command(name="pull")
def models_pull(as_json: AsJson = False) -> None:
    """Fetch from the hub what the settings name and is not here. Exits with 1 where something cannot be had."""
    if any(card.state in ("absent", "failed") for card in _show_cards(as_json, pull=True)):
        raise typer.Exit(1)


@models.command(name="verify")
def models_verify(as_json: AsJson = False) -> None:
    """Read the weights that are here again and compare their hashes. Exits with 1 where one differs."""
    if any(card.state == "failed" for card in _show_cards(as_json, pull=False)):
        raise typer.Exit(1)


@models.command(name="warm")
def models_warm(as_json: AsJson = False) -> None:
    """Load every model and compile the redaction rules now, so that the first request need not."""
    from coatcheck.cli import checks

    warmed = checks.warm()
    output.show_table(
        [check.as_dict() for check in warmed], as_json, ("stage", "state", "detail"), ((c.name, c.state, c.detail) for c in warmed)
    )
    if any(check.state == "failed" for check in warmed):
        raise typer.Exit(1)


def doctor(as_json: AsJson = False) -> None:
    """Check this machine.

    Settings, data directory, database, index, weights, rule cache. Exits with 1 when something is wrong.
    """
    import asyncio

    from coatcheck.cli import checks

    found = asyncio.run(checks.everything())
    output.show_table(
        {"ok": all(c.state != "failed" for c in found), "checks": [c.as_dict() for c in found]},
        as_json,
        ("check", "state", "detail"),
        ((c.name, c.state, c.detail) for c in found),
    )
    if any(check.state == "failed" for check in found):
        raise typer.Exit(1)


def mcp(as_json: Annotated[bool, typer.Option("--json", help="It speaks JSON either way.")] = False) -> None:
    """Serve MCP on stdin and stdout."""
    from coatcheck.cli import connection
    from coatcheck.cli.mcp_bridge import Bridge

    connection.run(lambda client: Bridge(client).run())


def _show_cards(as_json: bool, *, pull: bool) -> list[Card]:
    from coatcheck.cli import checks

    cards = checks.cards(pull=pull)
    columns = ("stage", "state", "name", "source", "revision", "licence", "sha256", "detail")
    output.show_table([card.as_dict() for card in cards], as_json, columns, (tuple(card.as_dict().values()) for card in cards))
    return cards


def _announce(data_dir: Path, pid: int, as_json: bool) -> None:
    """Waits until this process has published its URL, and prints it."""
    import json
    import time

    from coatcheck_client.discovery import KEY_FILE, RUN_FILE

    while True:
        try:
            content = json.loads((data_dir / RUN_FILE).read_text("utf-8"))
        except (OSError, ValueError):
            content = {}
        if content.get("pid") == pid:
            break
        time.sleep(0.1)
    if as_json:
        output.print_json({"url": content["url"], "data_dir": data_dir})
    else:
        key = f", a key in its {KEY_FILE}" if (data_dir / KEY_FILE).exists() else ""
        output.say(f"Coatcheck serves on {content['url']} (data in {data_dir}{key}).")
