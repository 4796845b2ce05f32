"""``/v1/admin/principals``, ``teams`` and ``memberships``: who exists in the tenant, and who belongs where."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response

from coatcheck.api.dependencies import Caller, PageSize, PageToken, UseCases, body_of
from coatcheck.api.documented import problems, takes
from coatcheck.api.responses import answer, no_content
from coatcheck.domain.errors import NotFound
from coatcheck_client.wire import (
    MembershipCreate,
    MembershipOut,
    MembershipPage,
    PrincipalCreate,
    PrincipalOut,
    PrincipalPage,
    PrincipalPatch,
    TeamCreate,
    TeamOut,
    TeamPage,
)

router = APIRouter(tags=["administration"])

PrincipalId = Annotated[UUID, Path()]
TeamId = Annotated[UUID, Path()]
OfTeam = Annotated[UUID | None, Query(description="Only this team's.")]


@router.get("/v1/admin/principals", response_model=PrincipalPage, responses=problems())
async def list_principals(caller: Caller, use_cases: UseCases, page_size: PageSize = 50, page_token: PageToken = None) -> Response:
    """The tenant's principals, active or not."""
    return answer(await use_cases.principals.page(caller, page_size, page_token))


@router.post(
    "/v1/admin/principals",
    status_code=201,
    response_model=PrincipalOut,
    responses=problems(),
    openapi_extra=takes(PrincipalCreate),
)
async def create_principal(
    caller: Caller, use_cases: UseCases, body: Annotated[PrincipalCreate, Depends(body_of(PrincipalCreate))]
) -> Response:
    """Makes a principal. Nobody gives a role whose rights it does not hold itself."""
    return answer(await use_cases.principals.create(caller, body), 201)


@router.get("/v1/admin/principals/{principal_id}", response_model=PrincipalOut, responses=problems(NotFound))
async def get_principal(caller: Caller, use_cases: UseCases, principal_id: PrincipalId) -> Response:
    return answer(await use_cases.principals.one(caller, principal_id))


@router.patch(
    "/v1/admin/principals/{principal_id}",
    response_model=PrincipalOut,
    responses=problems(NotFound),
    openapi_extra=takes(PrincipalPatch),
)
async def change_principal(
    caller: Caller,
    use_cases: UseCases,
    principal_id: PrincipalId,
    body: Annotated[PrincipalPatch, Depends(body_of(PrincipalPatch))],
) -> Response:
    """Changes name, role, status or subject. What is taken away counts from the next request on."""
    return answer(await use_cases.principals.patch(caller, principal_id, body))


@router.get("/v1/admin/teams", response_model=TeamPage, responses=problems())
async def list_teams(caller: Caller, use_cases: UseCases, page_size: PageSize = 50, page_token: PageToken = None) -> Response:
    """The tenant's teams."""
    return answer(await use_cases.teams.page(caller, page_size, page_token))


@router.post("/v1/admin/teams", status_code=201, response_model=TeamOut, responses=problems(), openapi_extra=takes(TeamCreate))
async def create_team(caller: Caller, use_cases: UseCases, body: Annotated[TeamCreate, Depends(body_of(TeamCreate))]) -> Response:
    """Makes a team, without members yet."""
    return answer(await use_cases.teams.create(caller, body), 201)


@router.delete("/v1/admin/teams/{team_id}", status_code=204, response_class=Response, responses=problems(NotFound))
async def delete_team(caller: Caller, use_cases: UseCases, team_id: TeamId) -> Response:
    """Ends the team: its sessions are their owners' alone from now on."""
    await use_cases.teams.delete(caller, team_id)
    return no_content()


@router.get("/v1/admin/memberships", response_model=MembershipPage, responses=problems(NotFound))
async def list_memberships(
    caller: Caller, use_cases: UseCases, team: OfTeam = None, page_size: PageSize = 50, page_token: PageToken = None
) -> Response:
    """Who belongs to which team."""
    return answer(await use_cases.teams.memberships(caller, team, page_size, page_token))


@router.post(
    "/v1/admin/memberships",
    status_code=201,
    response_model=MembershipOut,
    responses=problems(NotFound),
    openapi_extra=takes(MembershipCreate),
)
async def create_membership(
    caller: Caller, use_cases: UseCases, body: Annotated[MembershipCreate, Depends(body_of(MembershipCreate))]
) -> Response:
    """Makes a principal a member of a team."""
    return answer(await use_cases.teams.join(caller, body), 201)


@router.delete(
    "/v1/admin/memberships/{team_id}/{principal_id}", status_code=204, response_class=Response, responses=problems(NotFound)
)
async def delete_membership(caller: Caller, use_cases: UseCases, team_id: TeamId, principal_id: PrincipalId) -> Response:
    """Ends a membership: the principal's next request sees nothing of the team's."""
    await use_cases.teams.leave(caller, team_id, principal_id)
    return no_content()
