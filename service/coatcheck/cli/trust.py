"""``issuers`` and ``delegations``: whose tokens count, and what agents were given."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson
from coatcheck.identity.doors import Door

issuers = typer.Typer(help="Name the token issuers that speak for tenants.", no_args_is_help=True, rich_markup_mode=None)
delegations = typer.Typer(help="Make, list and revoke credentials for agents.", no_args_is_help=True, rich_markup_mode=None)


@issuers.command(name="create")
def create_issuer(
    issuer: Annotated[str, typer.Argument(metavar="ISSUER", help="As its tokens name it (iss), to the letter.")],
    keys: Annotated[str, typer.Option(help="The address of its public keys (JWKS).")],
    audience: Annotated[str, typer.Option(help="What its tokens must be for (aud).")],
    tenant: Annotated[UUID | None, typer.Option(help="The tenant it speaks for; your own where none is given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Let an issuer speak for a tenant."""
    from coatcheck.cli import connection

    made = connection.run(lambda c: c.create_issuer(issuer, jwks_uri=keys, audience=audience, tenant_id=tenant))
    output.show(made, as_json, f"{made.issuer} speaks for {made.tenant_id}.")


@issuers.command(name="list")
def list_issuers(as_json: AsJson = False) -> None:
    """List the issuers of the installation."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: client.issuers())
    output.show_table(
        found, as_json, ("issuer", "tenant", "keys", "audience"), ((i.issuer, i.tenant_id, i.jwks_uri, i.audience) for i in found)
    )


@issuers.command(name="delete")
def delete_issuer(issuer: Annotated[str, typer.Argument(metavar="ISSUER", help="To the letter.")], as_json: AsJson = False) -> None:
    """Let an issuer speak no more: its tokens are refused from the next request on."""
    from coatcheck.cli import connection

    connection.run(lambda client: client.delete_issuer(issuer))
    output.show({"deleted": issuer}, as_json, f"{issuer} speaks for nobody.")


@delegations.command(name="create")
def create_delegation(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whom it is for.")],
    operation: Annotated[list[str], typer.Option(help="An operation it grants; may be given more than once.")],
    door: Annotated[list[Door] | None, typer.Option(help="Where it is taken: api and mcp where none is given.")] = None,
    session: Annotated[list[UUID] | None, typer.Option(help="A session it is limited to; may be given more than once.")] = None,
    seconds: Annotated[int | None, typer.Option(help="How long it lasts: an hour, or this.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a credential for an agent. It is shown this once."""
    from coatcheck.cli import connection

    made = connection.run(
        lambda c: c.delegate(name, operations=operation, audience=door or ("api", "mcp"), sessions=session, expires_in_s=seconds)
    )
    output.show(made, as_json, f"{made.name}  {made.delegation_id}  until {output.moment(made.expires_at)}", made.credential or "")


@delegations.command(name="list")
def list_delegations(as_json: AsJson = False) -> None:
    """List your own delegations, without their secrets."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: client.delegations())
    rows = ((d.delegation_id, d.name, d.depth, "revoked" if d.revoked_at else d.expires_at, d.operations) for d in found)
    output.show_table(found, as_json, ("delegation", "name", "depth", "until", "operations"), rows)


@delegations.command(name="revoke")
def revoke_delegation(
    delegation_id: Annotated[UUID, typer.Argument(metavar="DELEGATION", help="A delegation's id.")], as_json: AsJson = False
) -> None:
    """Revoke a delegation at once, and all that was made with it."""
    from coatcheck.cli import connection

    connection.run(lambda client: client.revoke_delegation(delegation_id))
    output.show({"revoked": delegation_id}, as_json, f"Revoked {delegation_id}.")
