"""``keys`` and ``tenants``: who may come in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson
from coatcheck.identity.operations import Operation

if TYPE_CHECKING:
    from coatcheck_client.wire import KeyOut

keys = typer.Typer(help="Make, list, rotate and revoke API keys.", no_args_is_help=True, rich_markup_mode=None)
tenants = typer.Typer(help="Make, list, limit and off-board tenants.", no_args_is_help=True, rich_markup_mode=None)


@keys.command(name="create")
def create_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    operation: Annotated[
        list[Operation] | None,
        typer.Option(
            help="An operation it grants, of those that you hold; may be given more than once. "
            "All of them where none is given; tenants to somebody else only by name."
        ),
    ] = None,
    session: Annotated[list[UUID] | None, typer.Option(help="A session it is limited to; may be given more than once.")] = None,
    principal: Annotated[UUID | None, typer.Option(help="Whose key it is; your own where none is given.")] = None,
    expires: Annotated[datetime | None, typer.Option(help="When it ends, in UTC.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make an API key. It is shown this once."""
    from coatcheck.cli import connection

    until = output.in_utc(expires)
    _print(
        connection.run(
            lambda c: c.create_key(name, principal_id=principal, operations=operation, sessions=session, expires_at=until)
        ),
        as_json,
    )


@keys.command(name="list")
def list_keys(as_json: AsJson = False) -> None:
    """List the API keys of the tenant, without their secrets."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: client.keys())
    rows = ((k.key_id, k.name, k.principal_id, _state(k), k.created_at, k.expires_at, _reach(k), k.operations) for k in found)
    output.show_table(found, as_json, ("key", "name", "principal", "state", "created", "expires", "sessions", "operations"), rows)


@keys.command(name="revoke")
def revoke_key(key_id: Annotated[UUID, typer.Argument(metavar="KEY", help="A key's id.")], as_json: AsJson = False) -> None:
    """Revoke an API key at once."""
    from coatcheck.cli import connection

    connection.run(lambda client: client.revoke_key(key_id))
    output.show({"revoked": key_id}, as_json, f"Revoked {key_id}.")


@keys.command(name="rotate")
def rotate_key(key_id: Annotated[UUID, typer.Argument(metavar="KEY", help="A key's id.")], as_json: AsJson = False) -> None:
    """Replace an API key by a new one of the same rights. It is shown this once."""
    from coatcheck.cli import connection

    _print(connection.run(lambda client: client.rotate_key(key_id)), as_json)


@keys.command(name="rotate-root")
def rotate_root(as_json: AsJson = False) -> None:
    """Bring a new root key into use, while nothing serves.

    A data directory of its own gets one; elsewhere COATCHECK_ROOT_KEY is the new one, and COATCHECK_ROOT_KEY_PREVIOUS holds
    those before it.
    """
    import asyncio

    from coatcheck.app.offline import rotate_root_key
    from coatcheck.cli import connection

    version = asyncio.run(rotate_root_key(connection.local_settings()))
    output.show(
        {"version": version},
        as_json,
        f"Root key version {version} is in use. Keep the earlier ones: what they made is verified with them.",
    )


@tenants.command(name="create")
def create_tenant(name: Annotated[str, typer.Argument(metavar="NAME", help="The tenant's name.")], as_json: AsJson = False) -> None:
    """Make a tenant. Its first operator's key is shown this once."""
    from coatcheck.cli import connection

    made = connection.run(lambda client: client.create_tenant(name))
    output.show(made, as_json, f"{made.name}  {made.tenant_id}", made.key or "")


@tenants.command(name="list")
def list_tenants(as_json: AsJson = False) -> None:
    """List all tenants of the installation."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: client.tenants())
    rows = ((t.tenant_id, t.name, t.status, t.created_at) for t in found)
    output.show_table(found, as_json, ("tenant", "name", "status", "created"), rows)


@tenants.command(name="delete")
def delete_tenant(
    tenant_id: Annotated[UUID, typer.Argument(metavar="TENANT", help="A tenant's id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Off-board a tenant: its credentials end at once, everything of it is erased. Never your own."""
    import sys

    from coatcheck.cli import connection

    if not yes and not (sys.stdin.isatty() and typer.confirm(f"Erase the tenant {tenant_id} for good?", err=True)):
        output.warn("nothing was erased; --yes answers the question beforehand")
        raise typer.Exit(2)
    receipt = connection.run(lambda client: client.erase_tenant(tenant_id))
    output.show(receipt, as_json, f"Erased {tenant_id}. Receipt: {receipt.erasure_id}")


def _print(made: KeyOut, as_json: bool) -> None:
    output.show(made, as_json, f"{made.name}  {made.key_id}", made.key or "")


def _reach(key: KeyOut) -> str:
    return "all" if key.sessions is None else str(len(key.sessions))


def _state(key: KeyOut) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= datetime.now(UTC):
        return "expired"
    return "active"
