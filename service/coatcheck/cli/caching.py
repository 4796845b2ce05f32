"""``cache``: what the response cache holds, and taking answers out of it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

cache = typer.Typer(help="Look at the response cache, and purge it.", no_args_is_help=True, rich_markup_mode=None)
Tenant = Annotated[bool, typer.Option("--tenant", help="Everybody's in the tenant, for operators.")]


@cache.command()
def stats(tenant: Tenant = False, as_json: AsJson = False) -> None:
    """Show whether the cache is on, and what it holds of your own."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: client.cache_stats(whose="tenant" if tenant else "own"))
    if as_json:
        output.print_json(found)
        return
    oldest = f", the oldest of {output.moment(found.oldest_at)}" if found.oldest_at is not None else ""
    output.say(f"{'on' if found.enabled else 'off'}; {found.entries} answers, {found.answer_bytes:,} bytes{oldest}")


@cache.command()
def purge(
    tenant: Tenant = False,
    principal: Annotated[UUID | None, typer.Option(help="A principal's, for operators.")] = None,
    session: Annotated[str | None, typer.Option(help="Only those of a conversation: a session's id, or your name for it.")] = None,
    source: Annotated[str | None, typer.Option(help="Only those that rest on a source.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take answers out of the cache: all of your own, or what the options name."""
    from coatcheck.cli import connection

    if tenant and principal is not None:
        raise typer.BadParameter("--tenant and --principal exclude each other.")
    done = connection.run(
        lambda client: client.cache_purge(
            whose="tenant" if tenant else "own" if principal is None else "principal",
            principal_id=principal,
            session=session,
            source=source,
        )
    )
    output.show(done, as_json, f"Purged {done.purged}.")
