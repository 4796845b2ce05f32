"""One table over every operation of the OpenAPI document, over the whole app: who is refused, and in which words."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
import pytest_asyncio

from coatcheck.api.app import routed_app
from coatcheck.api.openapi import document
from coatcheck.identity.operations import EVERYTHING
from tests import apps
from tests.api.conftest import Served
from tests.api.operations import EVERY_OPERATION, NOTHING, PUBLIC, Ids, Row
from tests.apps import Caller
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = [pytest.param(method, row, id=f"{method} {path}") for (method, path), row in EVERY_OPERATION.items()]
NAMING_ROWS = [one for one in ROWS if one.values[1].names_something]  # type: ignore[union-attr]
SESSION_ROWS = [one for one in ROWS if one.values[1].names_a_session]  # type: ignore[union-attr]
CANARY = "canary-" + "f00d" * 4


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def theirs(served: Served) -> Ids:
    """What the served tenant's operator has: a session with one run, a key, and a job of each kind."""
    caller = served.operator.headers
    made = (await served.http.post("/v1/compactions", json=request("theirs", window(mark=CANARY)), headers=caller)).json()
    entries = await served.http.get(f"/v1/manifests/{made['manifest_id']}/entries", headers=caller)
    keys = await served.http.get("/v1/admin/keys", headers=caller)
    jobs = {
        name: (await served.http.post(f"/v1/admin/{kind}", headers=caller)).json()["job_id"]
        for name, kind in (("scan", "scan"), ("repair", "repair"), ("reconcile", "reconcile"), ("rescan", "redact-rescan"))
    }
    return Ids(
        session=made["session_id"],
        manifest=made["manifest_id"],
        sha256=entries.json()["entries"][0]["sha256"],
        key=keys.json()["keys"][0]["key_id"],
        **jobs,
    )


async def send(served: Served, method: str, row: Row, ids: Ids, caller: Caller) -> httpx.Response:
    path, body = row.request(ids)
    return await served.http.request(method, path, json=body, headers=caller.headers)


def without_request(answer: httpx.Response) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers without what names the one request."""
    body = answer.json()
    assert body.pop("instance").startswith("urn:uuid:")
    return answer.status_code, body, {name: value for name, value in answer.headers.items() if name != "x-request-id"}


async def test_the_table_holds_every_operation_of_the_document() -> None:
    made = document(routed_app())["paths"]

    assert {(method.upper(), path) for path, item in made.items() for method in item} == set(EVERY_OPERATION) | PUBLIC


async def test_every_operation_documents_what_it_may_answer() -> None:
    made = document(routed_app())["paths"]

    for (method, path), row in EVERY_OPERATION.items():
        wanted = {"400", "401", "403", "413", "422", "500", "503"} | ({"404"} if row.names_something else set())
        assert wanted <= set(made[path][method.lower()]["responses"]), path


@pytest.mark.parametrize(("method", "row"), ROWS)
async def test_without_a_credential_every_route_gives_the_one_refusal(served: Served, theirs: Ids, method: str, row: Row) -> None:
    nowhere = without_request(await served.http.get("/v1/nowhere"))
    unproven = {"Authorization": f"Bearer {served.operator.key[:-1]}{'A' if served.operator.key[-1] != 'A' else 'B'}"}

    for headers in ({}, unproven):
        for content in (b"", b'{"a":1,"a":2}', b"\xff"):
            answer = await served.http.request(method, row.request(theirs)[0], content=content, headers=headers)
            assert without_request(answer) == nowhere
    assert nowhere[0] == 401
    assert nowhere[1]["type"].endswith(":unauthenticated")


@pytest.mark.parametrize(("method", "row"), ROWS)
async def test_without_its_operation_every_route_is_forbidden(served: Served, theirs: Ids, method: str, row: Row) -> None:
    """Also for what is not there: a key that may not look cannot find out."""
    tenant = served.operator.tenant_id
    caller = await apps.new_principal(served.app, tenant, EVERYTHING - {row.operation})

    answers = [without_request(await send(served, method, row, ids, caller)) for ids in (theirs, NOTHING)]

    assert answers[0][:2] == answers[1][:2]
    assert answers[0][0] == 403
    assert answers[0][1]["type"].endswith(":forbidden")


@pytest.mark.parametrize(("method", "row"), NAMING_ROWS)
async def test_what_is_another_tenants_is_answered_as_what_is_not_there(served: Served, theirs: Ids, method: str, row: Row) -> None:
    stranger = await apps.new_tenant(served.app)

    foreign = without_request(await send(served, method, row, theirs, stranger))
    unknown = without_request(await send(served, method, row, NOTHING, stranger))

    assert foreign == unknown
    assert foreign[0] == 404
    assert foreign[1]["type"].endswith(":not-found")


@pytest.mark.parametrize(("method", "row"), SESSION_ROWS)
async def test_what_a_colleague_keeps_is_answered_as_what_is_not_there(served: Served, theirs: Ids, method: str, row: Row) -> None:
    colleague = await apps.new_principal(served.app, served.operator.tenant_id)

    foreign = without_request(await send(served, method, row, theirs, colleague))
    unknown = without_request(await send(served, method, row, NOTHING, colleague))

    assert foreign == unknown
    assert foreign[0] == 404


@pytest.mark.parametrize(("method", "row"), SESSION_ROWS)
async def test_a_key_kept_to_one_session_reaches_no_other(served: Served, theirs: Ids, method: str, row: Row) -> None:
    owner = served.operator
    other = (await served.http.post("/v1/compactions", json=request("other"), headers=owner.headers)).json()["session_id"]
    body = {"name": "narrow", "sessions": [other]}
    narrow = (await served.http.post("/v1/admin/keys", json=body, headers=owner.headers)).json()
    caller = Caller(owner.tenant_id, owner.principal_id, narrow["key"])

    foreign = without_request(await send(served, method, row, theirs, caller))
    unknown = without_request(await send(served, method, row, NOTHING, caller))

    assert foreign == unknown
    assert foreign[0] == 404


async def test_lists_and_recalls_of_others_hold_nothing_of_it(served: Served, theirs: Ids) -> None:
    stranger = await apps.new_tenant(served.app)
    colleague = await apps.new_principal(served.app, served.operator.tenant_id)

    for caller in (stranger, colleague):
        sessions = await served.http.get("/v1/sessions", headers=caller.headers)
        recalled = await served.http.post("/v1/recall", json={"query": CANARY}, headers=caller.headers)
        assert sessions.json()["sessions"] == []
        assert recalled.json()["hits"] == []
        assert CANARY not in recalled.text + sessions.text


async def test_after_all_of_that_it_is_still_there(served: Served, theirs: Ids) -> None:
    """Last in the module: nobody above could change what is not theirs, and its owner can read it."""
    owner = served.operator.headers

    session = await served.http.get(f"/v1/sessions/{theirs.session}", headers=owner)
    back = await served.http.get(f"/v1/manifests/{theirs.manifest}/window", headers=owner)
    jobs = await asyncio.gather(
        served.http.get(f"/v1/admin/scan/{theirs.scan}", headers=owner),
        served.http.get(f"/v1/admin/repair/{theirs.repair}", headers=owner),
        served.http.get(f"/v1/admin/reconcile/{theirs.reconcile}", headers=owner),
        served.http.get(f"/v1/admin/redact-rescan/{theirs.rescan}", headers=owner),
    )

    assert session.json()["visibility"] == "conversation"
    assert back.json()["messages"] == window(mark=CANARY)
    assert [job.status_code for job in jobs] == [200] * 4
    assert served.operator.key
