"""Threats at the doors: what is open, what works before it has asked, what takes a claim for a fact (docs/threats.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from starlette.routing import Route
from starlette.types import Message

from coatcheck.api.app import ROUTERS, routed_app
from coatcheck.api.edge import METHODS, PROBES
from coatcheck.app.compose import App
from coatcheck.identity.operations import OPERATOR
from tests import apps
from tests.api.operations import EVERY_OPERATION, NOTHING, PUBLIC, UNKNOWN
from tests.isolation.answers import said
from tests.isolation.rows import mentioning
from tests.isolation.test_same_class_of_time import statements
from tests.isolation.town import left_by
from tests.isolation.world import World, new_world
from tests.postgres import Postgres
from tests.windows import request, window


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def world(app: App) -> AsyncIterator[World]:
    async with new_world(app) as made:
        yield made


async def test_T01_every_route_of_the_app_but_the_probes_wants_a_credential(world: World) -> None:
    """Also what no document describes: /mcp, the document itself, and whatever is added without a row."""
    routes = [*routed_app().routes, *(route for module in ROUTERS for route in module.router.routes)]
    paths = {route.path for route in routes if isinstance(route, Route)} | {"/mcp", "/mcp/", "/docs", "/redoc", "/"}

    assert {path for _, path in PUBLIC} == PROBES == {"/livez", "/readyz", "/progressz", "/metrics"}
    assert paths >= PROBES | {"/openapi.json", "/v1/recall"}
    for path in sorted(paths - PROBES):
        for method in sorted(METHODS):
            answer = await world.http.request(method, path.replace("{", "").replace("}", ""))
            assert answer.status_code == 401, (method, path)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no credential"),
        pytest.param({"Authorization": "Bearer " + "x" * 400}, id="what is no key"),
        pytest.param({"Authorization": "Bearer x", "Content-Length": "999999999999"}, id="a body of a terabyte"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/compactions", "/v1/import", "/mcp"])
async def test_T02_no_work_is_done_for_a_stranger(world: World, path: str, headers: dict[str, str]) -> None:
    """Not a byte of the body is received, not a statement is sent."""
    received, sent = 0, list[Message]()

    async def receive() -> Message:
        nonlocal received
        received += 1
        return {"type": "http.request", "body": b'{"session": ' * 100_000, "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    fields = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": fields,
        "http_version": "1.1", "scheme": "http", "client": ("10.0.0.1", 1), "server": None,
    }  # fmt: skip
    with statements() as statements_sent:
        await world.app.asgi(scope, receive, send)

    assert (sent[0]["status"], received, statements_sent) == (401, 0, [])


async def test_T03_a_key_that_grants_nothing_does_nothing(world: World) -> None:
    """Whatever a use case asks for is refused unless it was granted by name."""
    caller = await apps.new_principal(world.app, world.owner.tenant_id, frozenset({"everything", "*", "admin"}))

    for (method, _), row in EVERY_OPERATION.items():
        assert (await row.send(world.http, method, NOTHING, caller.headers)).status_code == 403, row.path


async def test_T04_a_foreign_id_inside_a_body_is_an_unknown_one(world: World) -> None:
    me = world.foreigner.caller.headers
    mine = await left_by(world.foreigner, "of-the-foreigner")
    theirs = world.theirs

    def asked(ids: Any, principal: Any) -> list[tuple[str, str, dict[str, Any]]]:
        session, manifest = str(ids.session), str(ids.manifest)
        return [
            ("POST", "/v1/compactions", request("of-the-foreigner", window(mark="new"), parent_manifest_id=manifest)),
            ("POST", "/v1/compactions", request(session, window(mark="new"))),
            ("POST", "/v1/compactions", request("a new one", window(mark="new"), visibility=f"team:{session}")),
            ("POST", "/v1/recall", {"query": "health", "session": session}),
            ("PATCH", f"/v1/sessions/{mine.session}", {"participants": [str(principal)]}),
            ("PATCH", f"/v1/sessions/{mine.session}", {"visibility": f"team:{session}"}),
            ("POST", "/v1/admin/keys", {"name": "k", "principal_id": str(principal)}),
        ]

    pairs = zip(asked(theirs, world.owner.principal_id), asked(NOTHING, UNKNOWN), strict=True)
    for (method, path, foreign), (_, _, unknown) in pairs:
        there = await world.http.request(method, path, json=foreign, headers=me)
        nowhere = await world.http.request(method, path, json=unknown, headers=me)
        assert said(there) == said(nowhere), (path, foreign)
        assert there.status_code in (403, 404, 422), (path, there.text)


async def test_T14_nobody_is_anybody_by_default(world: World, postgres: Postgres, shared_database: str) -> None:
    """Whatever does not prove who asks is refused: it does not become a guest, a first tenant or whoever asked before."""
    warm = await world.owner.http.get("/v1/sessions")

    for number, headers in enumerate(world.refused.values()):
        made = await world.http.post("/v1/compactions", json=request(f"by-nobody-{number}"), headers=headers)
        listed = await world.http.get("/v1/sessions", headers=headers)
        assert (made.status_code, listed.status_code) == (401, 401)

    assert warm.status_code == 200
    assert mentioning(postgres.owner_url(shared_database), ["by-nobody-"]) == set()


async def test_T29_a_key_of_one_session_reaches_it_alone_over_http_mcp_and_jobs(world: World) -> None:
    """What a credential is kept to is held by the use case and the query, not by whoever calls them."""
    ours = await left_by(world.owner, "kept-to")
    made = await world.owner.http.post(
        "/v1/admin/keys", json={"name": "narrow", "operations": sorted(OPERATOR), "sessions": [str(ours.session)]}
    )
    headers = {"Authorization": f"Bearer {made.json()['key']}"}
    mixed = replace(world.theirs, session=ours.session)

    listed = (await world.http.get("/v1/sessions", headers=headers)).json()["sessions"]
    found = (await world.http.post("/v1/recall", json={"query": "health", "top_k": 50}, headers=headers)).json()["hits"]
    call = {"name": "recall_memory", "arguments": {"query": "health", "top_k": 50}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    told = await world.http.post("/mcp", json=message, headers={**headers, "Accept": "application/json, text/event-stream"})
    by_tool = told.json()["result"]["structuredContent"]["hits"]
    jobs = [
        (await world.http.post(f"/v1/admin/{kind}", headers=headers)).status_code for kind in ("scan", "repair", "redact-rescan")
    ]

    assert [session["session_id"] for session in listed] == [str(ours.session)]
    assert {hit["session_id"] for hit in found} == {hit["session_id"] for hit in by_tool} == {str(ours.session)}
    assert jobs == [403] * 3
    read = [row for (method, path), row in EVERY_OPERATION.items() if method == "GET" and path.startswith("/v1/manifests")]
    answers = await asyncio.gather(*(row.send(world.http, "GET", mixed, headers) for row in read))
    assert {answer.status_code for answer in answers} == {404}
