"""``principals`` and ``teams``: who exists in the tenant, and who belongs where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

import typer

from coatcheck.cli import output
from coatcheck.cli.output import AsJson

if TYPE_CHECKING:
    from coatcheck_client.wire import PrincipalOut

principals = typer.Typer(help="Make, list and change principals.", no_args_is_help=True, rich_markup_mode=None)
teams = typer.Typer(help="Make and end teams; take principals in and out.", no_args_is_help=True, rich_markup_mode=None)

PrincipalId = Annotated[UUID, typer.Argument(metavar="PRINCIPAL", help="A principal's id.")]
TeamId = Annotated[UUID, typer.Argument(metavar="TEAM", help="A team's id.")]
RoleOption = Annotated[Literal["member", "operator"] | None, typer.Option(help="The most that any credential of its may do.")]
IssuerOption = Annotated[str | None, typer.Option(help="The issuer whose tokens speak for the principal, to the letter.")]
SubjectOption = Annotated[str | None, typer.Option(help="What that issuer calls it (sub).")]


@principals.command(name="create")
def create_principal(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The principal's name.")],
    role: RoleOption = None,
    issuer: IssuerOption = None,
    subject: SubjectOption = None,
    as_json: AsJson = False,
) -> None:
    """Make a principal, without a key yet."""
    from coatcheck.cli import connection

    _print(
        connection.run(lambda c: c.create_principal(name, role=role or "member", issuer=issuer, subject=subject)),
        as_json,
    )


@principals.command(name="list")
def list_principals(as_json: AsJson = False) -> None:
    """List the tenant's principals."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: client.principals())
    rows = ((p.principal_id, p.name, p.role, p.status, p.subject or "", len(p.teams)) for p in found)
    output.show_table(found, as_json, ("principal", "name", "role", "status", "subject", "teams"), rows)


@principals.command(name="change")
def change_principal(
    principal_id: PrincipalId,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    role: RoleOption = None,
    issuer: IssuerOption = None,
    subject: SubjectOption = None,
    as_json: AsJson = False,
) -> None:
    """Change a principal's name, role, or whose tokens speak for it."""
    from coatcheck.cli import connection

    if name is role is issuer is subject is None:
        raise typer.BadParameter("nothing to change: give --name, --role, or --issuer with --subject.")
    identity = {key: value for key, value in (("issuer", issuer), ("subject", subject)) if value is not None}
    _print(connection.run(lambda c: c.change_principal(principal_id, name=name, role=role, **identity)), as_json)


@principals.command(name="deactivate")
def deactivate(principal_id: PrincipalId, as_json: AsJson = False) -> None:
    """Refuse a principal, with all its keys, tokens and delegates, from its next request on."""
    from coatcheck.cli import connection

    _print(connection.run(lambda c: c.change_principal(principal_id, status="inactive")), as_json)


@principals.command(name="activate")
def activate(principal_id: PrincipalId, as_json: AsJson = False) -> None:
    """Let a principal in again."""
    from coatcheck.cli import connection

    _print(connection.run(lambda c: c.change_principal(principal_id, status="active")), as_json)


@teams.command(name="create")
def create_team(name: Annotated[str, typer.Argument(metavar="NAME", help="The team's name.")], as_json: AsJson = False) -> None:
    """Make a team, without members yet."""
    from coatcheck.cli import connection

    made = connection.run(lambda client: client.create_team(name))
    output.show(made, as_json, f"{made.name}  {made.team_id}")


@teams.command(name="list")
def list_teams(as_json: AsJson = False) -> None:
    """List the tenant's teams."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: client.teams())
    output.show_table(found, as_json, ("team", "name", "members"), ((t.team_id, t.name, t.members) for t in found))


@teams.command(name="members")
def members(team_id: TeamId, as_json: AsJson = False) -> None:
    """List who belongs to a team."""
    from coatcheck.cli import connection

    found = connection.run(lambda client: client.memberships(team_id))
    output.show_table(found, as_json, ("principal", "since"), ((m.principal_id, m.created_at) for m in found))


@teams.command(name="join")
def join(team_id: TeamId, principal_id: PrincipalId, as_json: AsJson = False) -> None:
    """Take a principal in."""
    from coatcheck.cli import connection

    made = connection.run(lambda client: client.join_team(team_id, principal_id))
    output.show(made, as_json, f"{principal_id} belongs to {team_id}.")


@teams.command(name="leave")
def leave(team_id: TeamId, principal_id: PrincipalId, as_json: AsJson = False) -> None:
    """Take a principal out: its next request sees nothing of the team's."""
    from coatcheck.cli import connection

    connection.run(lambda client: client.leave_team(team_id, principal_id))
    output.show({"left": principal_id}, as_json, f"{principal_id} belongs to {team_id} no more.")


@teams.command(name="delete")
def delete_team(team_id: TeamId, as_json: AsJson = False) -> None:
    """End a team: its sessions are their owners' alone from then on."""
    from coatcheck.cli import connection

    connection.run(lambda client: client.delete_team(team_id))
    output.show({"deleted": team_id}, as_json, f"Ended {team_id}.")


def _print(principal: PrincipalOut, as_json: bool) -> None:
    output.show(principal, as_json, f"{principal.name}  {principal.principal_id}  {principal.role}, {principal.status}")
