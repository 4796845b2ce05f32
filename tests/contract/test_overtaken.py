"""Changes of a session that find the end of its team under way, done and not committed: they wait for it, and see it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from uuid import UUID

import httpx
import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.identity.operations import MEMBER
from coatcheck.identity.scopes import tenant_scope
from coatcheck.store import teams
from coatcheck.store.database import WorkerTransaction
from tests import apps
from tests.apps import Caller
from tests.windows import request

WAITING = sa.text("""
    SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()
""")


async def overtaken(
    app: App, tenant_id: UUID, asked: Coroutine[Any, Any, httpx.Response], by: Callable[[WorkerTransaction], Awaitable[object]]
) -> httpx.Response:
    """The answer to what was asked while the change was under way. It is committed once somebody waits for it, or nobody will."""

    async def work(tx: WorkerTransaction) -> asyncio.Task[httpx.Response]:
        await by(tx)
        late = asyncio.create_task(asked)
        while not late.done() and not await tx.connection.scalar(WAITING):
            await asyncio.wait({late}, timeout=0.01)
        return late

    return await (await app.parts.database.work(tenant_scope(tenant_id), work))


async def made(http: httpx.AsyncClient, path: str, **asked: object) -> dict[str, Any]:
    answer = await http.post(path, json=asked)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def team_of(http: httpx.AsyncClient, operator: Caller) -> UUID:
    team: str = (await made(http, "/v1/admin/teams", name="a team"))["team_id"]
    await made(http, "/v1/admin/memberships", team_id=team, principal_id=str(operator.principal_id))
    return UUID(team)


async def test_no_session_is_opened_to_a_team_that_is_being_ended(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    team = await team_of(http, operator)
    path = f"/v1/sessions/{(await made(http, '/v1/compactions', **request('s')))['session_id']}"

    late = await overtaken(
        app, operator.tenant_id, http.patch(path, json={"visibility": f"team:{team}"}), lambda tx: teams.delete(tx, team)
    )  # fmt: skip

    assert late.status_code == 403
    assert (await http.get(path)).json()["visibility"] == "conversation"


async def test_a_change_of_a_session_leaves_it_to_no_team_that_is_being_ended(
    app: App, http: httpx.AsyncClient, operator: Caller
) -> None:
    """What the change does not name is what stands when the end of the team is there."""
    team, colleague = await team_of(http, operator), await apps.new_principal(app, operator.tenant_id, MEMBER)
    session = await made(http, "/v1/compactions", **request("s"), visibility=f"team:{team}")
    path, participants = f"/v1/sessions/{session['session_id']}", [str(colleague.principal_id)]

    late = await overtaken(
        app, operator.tenant_id, http.patch(path, json={"participants": participants}), lambda tx: teams.delete(tx, team)
    )  # fmt: skip

    assert (late.status_code, late.json().get("visibility")) == (200, "personal")
    assert (await http.get(path)).json()["visibility"] == "personal"
