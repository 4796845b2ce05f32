"""Rights that end while a request is on its way: what it would have made, and what would have outlived them, is not made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from coatcheck.app.compose import App
from coatcheck.identity.operations import EVERYTHING
from tests import apps
from tests.apps import Caller
from tests.windows import request


def using(app: App, key: str) -> httpx.AsyncClient:
    return apps.client(app, Caller(UUID(int=1), UUID(int=1), key))


async def made(http: httpx.AsyncClient, path: str, **asked: object) -> dict[str, Any]:
    answer = await http.post(path, json=asked)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def held(
    app: App, credential: str, method: str, path: str, asked: dict[str, Any], meanwhile: Callable[[], Awaitable[httpx.Response]]
) -> httpx.Response:
    """A request that was let in, and whose body ends only after something else was done."""
    let_in, go_on = asyncio.Event(), asyncio.Event()
    text = json.dumps(asked).encode()

    async def slowly() -> AsyncIterator[bytes]:
        let_in.set()
        yield text[:1]
        await go_on.wait()
        yield text[1:]

    async with using(app, credential) as http:
        waiting = asyncio.create_task(http.request(method, path, content=slowly()))
        async with asyncio.timeout(20):
            await let_in.wait()
        done = await meanwhile()
        assert done.status_code in (200, 204), done.text
        go_on.set()
        return await waiting


async def things(http: httpx.AsyncClient) -> dict[str, Any]:
    """What there is to begin with, by what a path or a body names it."""
    team = await made(http, "/v1/admin/teams", name="a team")
    somebody = await made(http, "/v1/admin/principals", name="somebody")
    key = await made(http, "/v1/admin/keys", name="a key")
    session = await made(http, "/v1/compactions", **request("s"))
    return {
        "team": team["team_id"], "somebody": somebody["principal_id"], "key": key["key_id"], "session": session["session_id"],
        "name": str(uuid4()),
    }  # fmt: skip


async def everything(http: httpx.AsyncClient, session: str) -> list[Any]:
    """What an operator sees of rights and readers."""
    paths = ["admin/keys", "admin/principals", "admin/memberships", "admin/issuers", "admin/tenants", "delegations"]
    seen = [(await http.get(f"/v1/{path}")).json() for path in paths]
    return [*seen, (await http.get(f"/v1/sessions/{session}")).json()]


HANDED_ON: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a delegation": ("POST", "/v1/delegations", {"name": "late", "audience": ["api"], "operations": ["read"]}),
    "a key": ("POST", "/v1/admin/keys", {"name": "late"}),
    "another key in its place": ("POST", "/v1/admin/keys/{key}/rotate", {}),
    "a principal": ("POST", "/v1/admin/principals", {"name": "late", "role": "operator"}),
    "a role": ("PATCH", "/v1/admin/principals/{somebody}", {"role": "operator"}),
    "a membership": ("POST", "/v1/admin/memberships", {"team_id": "{team}", "principal_id": "{somebody}"}),
    "an issuer": (
        "POST", "/v1/admin/issuers",
        {"issuer": "https://{name}.example/", "jwks_uri": "https://{name}.example/jwks", "audience": "us"},
    ),
    "a tenant": ("POST", "/v1/admin/tenants", {"name": "{name}"}),
    "a session's readers": ("PATCH", "/v1/sessions/{session}", {"visibility": "public"}),
}  # fmt: skip


def filled(handed_on: str, names: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    method, path, asked = HANDED_ON[handed_on]
    return (
        method,
        path.format(**names),
        {name: value.format(**names) if isinstance(value, str) else value for name, value in asked.items()},
    )


@pytest.mark.parametrize("handed_on", HANDED_ON)
async def test_a_key_that_is_revoked_meanwhile_hands_nothing_on(app: App, http: httpx.AsyncClient, handed_on: str) -> None:
    names = await things(http)
    leaked = await made(http, "/v1/admin/keys", name="leaked")
    method, path, asked = filled(handed_on, names)

    async def revoked() -> httpx.Response:
        return await http.delete(f"/v1/admin/keys/{leaked['key_id']}")

    seen: list[Any] = []

    async def revoked_and_looked_at() -> httpx.Response:
        answer = await revoked()
        seen.extend(await everything(http, names["session"]))
        return answer

    answer = await held(app, leaked["key"], method, path, asked, revoked_and_looked_at)

    assert (answer.status_code, answer.json()["type"].rsplit(":", 1)[-1]) == (401, "unauthenticated")
    assert await everything(http, names["session"]) == seen


@pytest.mark.parametrize("handed_on", HANDED_ON)
async def test_what_others_lose_meanwhile_is_no_matter(app: App, http: httpx.AsyncClient, handed_on: str) -> None:
    names = await things(http)
    own, others = await made(http, "/v1/admin/keys", name="own"), await made(http, "/v1/admin/keys", name="another's")
    method, path, asked = filled(handed_on, names)

    answer = await held(
        app, own["key"], method, path, asked, lambda: http.delete(f"/v1/admin/keys/{others['key_id']}")
    )  # fmt: skip

    assert answer.status_code in (200, 201), answer.text


async def test_nobody_opens_a_session_once_its_right_to_is_gone(app: App, http: httpx.AsyncClient, operator: Caller) -> None:
    """By what a delegate hangs on, by a membership, a role and a principal that end."""
    colleague = await apps.new_principal(app, operator.tenant_id, EVERYTHING)
    team = (await made(http, "/v1/admin/teams", name="a team"))["team_id"]
    membership = {"team_id": team, "principal_id": str(colleague.principal_id)}
    await made(http, "/v1/admin/memberships", **membership)
    person = f"/v1/admin/principals/{colleague.principal_id}"
    async with apps.client(app, colleague) as theirs:
        session = await made(theirs, "/v1/compactions", **request("s"))
        agent = await made(
            theirs, "/v1/delegations", name="an agent", audience=["api"], operations=["sessions", "publish", "delegate"]
        )
    async with using(app, agent["credential"]) as its:
        helper = await made(its, "/v1/delegations", name="a helper", audience=["api"], operations=["sessions", "publish"])
    path, opened = f"/v1/sessions/{session['session_id']}", {"visibility": "public"}

    answers = {
        "the agent's maker is revoked": await held(
            app, helper["credential"], "PATCH", path, opened,
            lambda: http.delete(f"/v1/delegations/{agent['delegation_id']}"),
        ),
        "no member any more": await held(
            app, colleague.key, "PATCH", path, {"visibility": f"team:{team}"},
            lambda: http.delete(f"/v1/admin/memberships/{team}/{colleague.principal_id}"),
        ),
        "no operator any more": await held(
            app, colleague.key, "PATCH", path, opened, lambda: http.patch(person, json={"role": "member"})
        ),
        "nobody any more": await held(
            app, colleague.key, "PATCH", path, opened, lambda: http.patch(person, json={"status": "inactive"})
        ),
    }  # fmt: skip

    assert {why: answer.status_code for why, answer in answers.items()} == dict.fromkeys(answers, 401)
    assert (await http.get(path)).status_code == 404
