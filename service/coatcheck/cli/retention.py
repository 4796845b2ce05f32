"""``sessions retention``: for how long sessions are kept."""

from __future__ import annotations

from typing import Annotated

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

NEVER = "never"
Days = Annotated[str | None, typer.Option(metavar="DAYS", help=f"Days to keep them; {NEVER!r} to keep them until they are erased.")]


def retention(
    conversation: Days = None, personal: Days = None, team: Days = None, public: Days = None, as_json: AsJson = False
) -> None:
    """Show for how long sessions are kept by kind; change what is given."""
    from coatcheck.cli import connection
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.wire import RetentionPolicy

    given = {"conversation": conversation, "personal": personal, "team": team, "public": public}
    changes = {kind: _days(kind, text) for kind, text in given.items() if text is not None}

    async def work(client: AsyncCoatcheck) -> RetentionPolicy:
        found = await client.retention()
        return await client.set_retention(RetentionPolicy(**(found.model_dump() | changes))) if changes else found

    found = connection.run(work)
    kept = found.model_dump().items()
    output.show_table(
        found, as_json, ("sessions", "kept for"), ((kind, "ever" if days is None else f"{days} days") for kind, days in kept)
    )


def _days(kind: str, text: str) -> int | None:
    if text == NEVER:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise typer.BadParameter(f"--{kind} takes a number of days or {NEVER!r}.")
    return int(text)
