"""``tenants limits``: what a tenant may take."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

DEFAULT = "default"
_HELP = f"; {DEFAULT!r} gives it back to the installation's"
Given = str | None


def limits(
    tenant_id: Annotated[UUID, typer.Argument(metavar="TENANT", help="A tenant's id.")],
    requests_per_minute: Annotated[Given, typer.Option(help="Requests a minute" + _HELP)] = None,
    bytes_per_minute: Annotated[Given, typer.Option(help="Bytes of request bodies a minute" + _HELP)] = None,
    embedding_seconds_per_minute: Annotated[Given, typer.Option(help="Seconds of the embedder a minute" + _HELP)] = None,
    max_segments: Annotated[Given, typer.Option(help="Segments it may have stored" + _HELP)] = None,
    max_bytes: Annotated[Given, typer.Option(help="Bytes it may have stored" + _HELP)] = None,
    as_json: AsJson = False,
) -> None:
    """Show a tenant's limits and what it has stored; change those that are given."""
    from coatcheck.cli import connection
    from coatcheck_client import AsyncCoatcheck
    from coatcheck_client.wire import TenantLimits, TenantLimitsOut

    given = {
        "requests_per_minute": requests_per_minute,
        "bytes_per_minute": bytes_per_minute,
        "embedding_seconds_per_minute": embedding_seconds_per_minute,
        "max_segments": max_segments,
        "max_bytes": max_bytes,
    }
    changes = {name: _number(name, text) for name, text in given.items() if text is not None}

    async def work(client: AsyncCoatcheck) -> TenantLimitsOut:
        found = await client.tenant_limits(tenant_id)
        if not changes:
            return found
        return await client.set_tenant_limits(tenant_id, TenantLimits(**(found.own.model_dump() | changes)))

    found = connection.run(work)
    if as_json:
        output.print_json(found)
        return
    own, effective = found.own.model_dump(), found.effective.model_dump()
    rows = ((name, _said(effective[name]), "default" if own[name] is None else "own") for name in own)
    output.table(("limit", "value", "whose"), rows)
    output.say(f"Stored: {found.stored.segments:,} segments, {found.stored.bytes:,} bytes.")


def _said(value: float | None) -> str:
    return "none" if value is None else f"{value:,}".removesuffix(".0")


def _number(name: str, text: str) -> float | None:
    if text == DEFAULT:
        return None
    try:
        number = int(text) if name.startswith("max_") else float(text)
    except ValueError as error:
        raise typer.BadParameter(f"--{name.replace('_', '-')} takes a number or {DEFAULT!r}.") from error
    if number < 0 or (number == 0 and not name.startswith("max_")):
        raise typer.BadParameter(f"--{name.replace('_', '-')} is too small.")
    return number
