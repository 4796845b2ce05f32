"""What an operator asks about who exists in its tenant: principals, teams, memberships. Each function is a flow."""

from __future__ import annotations

from uuid import UUID

from coatcheck_client.flows import Flow, Send, at_page, every_page, json_body, read, request, without_nulls
from coatcheck_client.operations import JSON
from coatcheck_client.wire import (
    MembershipOut,
    MembershipPage,
    PrincipalOut,
    PrincipalPage,
    TeamOut,
    TeamPage,
)

UNCHANGED = "unchanged"
"""For ``subject`` and ``issuer``, which None takes away."""


def principals() -> Flow[list[PrincipalOut]]:
    """All principals of the tenant, active or not."""
    return (
        yield from every_page(
            lambda token: read(Send("GET", "/v1/admin/principals", params=at_page(token)), PrincipalPage),
            lambda page: page.principals,
        )
    )


def principal(principal_id: UUID | str) -> Flow[PrincipalOut]:
    """One principal, with the teams it belongs to."""
    return (yield from read(Send("GET", f"/v1/admin/principals/{principal_id}"), PrincipalOut))


def create_principal(
    name: str, *, role: str = "member", issuer: str | None = None, subject: str | None = None
) -> Flow[PrincipalOut]:
    """Makes a principal. ``issuer`` and ``subject`` say whose tokens speak for it."""
    body = json_body(without_nulls(name=name, role=role, issuer=issuer, subject=subject))
    return (yield from read(Send("POST", "/v1/admin/principals", body, headers=JSON), PrincipalOut))


def change_principal(
    principal_id: UUID | str,
    *,
    name: str | None = None,
    role: str | None = None,
    status: str | None = None,
    issuer: str | None = UNCHANGED,
    subject: str | None = UNCHANGED,
) -> Flow[PrincipalOut]:
    """Changes a principal; ``status`` is active or inactive. What is taken away counts from the next request on."""
    identity = {name: value for name, value in (("issuer", issuer), ("subject", subject)) if value != UNCHANGED}
    body = json_body({**without_nulls(name=name, role=role, status=status), **identity})
    return (yield from read(Send("PATCH", f"/v1/admin/principals/{principal_id}", body, headers=JSON), PrincipalOut))


def teams() -> Flow[list[TeamOut]]:
    """All teams of the tenant."""
    return (
        yield from every_page(
            lambda token: read(Send("GET", "/v1/admin/teams", params=at_page(token)), TeamPage), lambda page: page.teams
        )
    )


def create_team(name: str) -> Flow[TeamOut]:
    """Makes a team, without members yet."""
    return (yield from read(Send("POST", "/v1/admin/teams", json_body({"name": name}), headers=JSON), TeamOut))


def delete_team(team_id: UUID | str) -> Flow[None]:
    """Ends a team: its sessions are their owners' alone from then on."""
    yield from request(Send("DELETE", f"/v1/admin/teams/{team_id}"))


def memberships(team_id: UUID | str | None = None) -> Flow[list[MembershipOut]]:
    """Who belongs to which team, or to this one."""
    of_team = {"team": str(team_id)} if team_id is not None else {}
    return (
        yield from every_page(
            lambda token: read(Send("GET", "/v1/admin/memberships", params={**of_team, **at_page(token)}), MembershipPage),
            lambda page: page.memberships,
        )
    )


def join_team(team_id: UUID | str, principal_id: UUID | str) -> Flow[MembershipOut]:
    """Makes a principal a member of a team."""
    body = json_body({"team_id": str(team_id), "principal_id": str(principal_id)})
    return (yield from read(Send("POST", "/v1/admin/memberships", body, headers=JSON), MembershipOut))


def leave_team(team_id: UUID | str, principal_id: UUID | str) -> Flow[None]:
    """Ends a membership: the principal's next request sees nothing of the team's."""
    yield from request(Send("DELETE", f"/v1/admin/memberships/{team_id}/{principal_id}"))
