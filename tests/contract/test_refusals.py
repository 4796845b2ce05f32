"""Every refusal of the contract's list: its status, its type, a pointer where there is one, and not one row stored."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from coatcheck.app.compose import App
from coatcheck.identity.operations import MEMBER
from tests import apps
from tests.apps import Caller
from tests.contract.stored import rows
from tests.isolation.secret import github
from tests.windows import call, request, result, window

ORPHAN_RESULT = [
    {"role": "user", "content": "x" * 3_000},
    result(9, "no call of mine"),
    {"role": "assistant", "content": "y" * 900},
]
MISPLACED_SYSTEM = {"session": "s", "window": {"format": "openai-chat", "messages": window(), "system": "x"}}
NO_OBJECT = {"session": "s", "window": {"messages": ["x" * 4_000]}}
OPEN_CALL = [*window(), call(99, "sleep 1")]
UNANSWERED = [window()[0], call(1, "one"), {"role": "user", "content": "z" * 3_000}]


def _with_id(call_id: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}
    return request("s", [window()[0], asked, {"role": "tool", "tool_call_id": call_id, "content": "x" * 3_000}])


def _at(time: str) -> dict[str, Any]:
    return {"session": "s", "window": {"messages": window(), "times": [time] * len(window())}}


REFUSED: list[tuple[str, dict[str, Any], int, str, str | None]] = [
    ("no messages", request("s", []), 422, "empty-window", None),
    ("nothing but empty text", request("s", [{"role": "user", "content": ""}] * 3), 422, "empty-window", None),
    ("a result without its call", request("s", ORPHAN_RESULT), 422, "invalid-window", "/window/messages/1"),
    ("an unanswered call at the end", request("s", OPEN_CALL), 422, "invalid-window", f"/window/messages/{len(OPEN_CALL) - 1}"),
    ("a call whose result is missing", request("s", UNANSWERED), 422, "invalid-window", "/window/messages/1"),
    ("a window shorter than its handoff", request("s", [{"role": "user", "content": "hello"}]), 422, "no-progress", None),
    ("an unknown role", request("s", [{"role": "wizard", "content": "x" * 4_000}]), 422, "invalid-request", "/window/messages/0"),
    ("a message that is no object", NO_OBJECT, 422, "invalid-request", "/window/messages/0"),
    ("times of another length", {**request("s"), "window": {"messages": window(), "times": [None]}}, 422, "invalid-request", None),
    ("a session name too long", request("s" * 201), 422, "invalid-request", "/session"),
    ("an empty session name", request(""), 422, "invalid-request", "/session"),
    ("a handoff too short to be one", request("s", max_handoff_chars=599), 422, "invalid-request", "/max_handoff_chars"),
    ("a handoff too long", request("s", max_handoff_chars=4_001), 422, "invalid-request", "/max_handoff_chars"),
    ("a focus too long", request("s", focus="f" * 301), 422, "invalid-request", "/focus"),
    ("an unknown field", request("s", colour="blue"), 422, "invalid-request", None),
    ("an unknown visibility", request("s", visibility="friends"), 422, "invalid-request", None),
    ("a parent that is none", request("s", parent_manifest_id=str(uuid4())), 422, "invalid-request", None),
    ("a session id that is nobody's", request(str(uuid4())), 404, "not-found", None),
    ("a system field outside Anthropic", MISPLACED_SYSTEM, 422, "invalid-request", None),
    ("a session name with a control character", request("a\x00b"), 422, "invalid-request", "/session"),
    ("a session name with a lone surrogate", request("a\ud800"), 422, "invalid-request", "/session"),
    ("a session name that looks like a secret", request(github()), 422, "invalid-request", "/session"),
    ("a call id with a control character", _with_id("c\x00"), 422, "invalid-request", "/window/messages/1"),
    ("a call id with a lone surrogate", _with_id("c\ud800"), 422, "invalid-request", "/window/messages/1"),
    ("a call id too long", _with_id("c" * 201), 422, "invalid-request", "/window/messages/1"),
    ("a call id that looks like a secret", _with_id(github()), 422, "invalid-request", "/window/messages/1"),
    ("a time that no calendar has", _at("0001-01-01T00:00:00+14:00"), 422, "invalid-request", "/window/times/0"),
    ("a time beyond the last year", _at("9999-12-31T23:59:59-12:00"), 422, "invalid-request", "/window/times/0"),
    ("a time that is none", _at("yesterday"), 422, "invalid-request", "/window/times/0"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "slug", "pointer"), [pytest.param(*case[1:], id=case[0]) for case in REFUSED])
async def test_a_refused_window_stores_nothing(
    app: App, operator: Caller, http: httpx.AsyncClient, body: dict[str, Any], status: int, slug: str, pointer: str | None
) -> None:
    before = await rows(app, operator.tenant_id)

    answer = await http.post("/v1/compactions", content=json.dumps(body))  # in ASCII: lone surrogates arrive

    problem = answer.json()
    assert (answer.status_code, problem["type"].rsplit(":", 1)[-1]) == (status, slug), problem
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["retryable"] is False
    assert problem["status"] == status
    if pointer is not None:
        assert problem["errors"][0]["pointer"].startswith(pointer)
    assert await rows(app, operator.tenant_id) == before


@pytest.mark.parametrize(
    ("raw", "status", "slug"),
    [
        (b"", 400, "malformed"),
        (b"{", 400, "malformed"),
        (b'{"session": "s", "session": "t"}', 400, "malformed"),
        (b'{"session": "s", "window": {"messages": [{"role": "user", "content": "a", "content": "b"}]}}', 400, "malformed"),
        (b'{"session": NaN}', 400, "malformed"),
        (b'{"session": "\xff"}', 400, "malformed"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "malformed"),
        (b'{"a": 1e999}', 400, "malformed"),
        (b"[]", 422, "invalid-request"),
        (b"null", 422, "invalid-request"),
    ],
)
async def test_a_malformed_body_stores_nothing(
    app: App, operator: Caller, http: httpx.AsyncClient, raw: bytes, status: int, slug: str
) -> None:
    answer = await http.post("/v1/compactions", content=raw, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["type"].rsplit(":", 1)[-1]) == (status, slug)
    assert sum((await rows(app, operator.tenant_id)).values()) == 0


async def test_no_credential_is_401_before_the_body_is_looked_at(app: App) -> None:
    async with apps.client(app) as stranger:
        answers = [
            await stranger.post("/v1/compactions", content=b"{"),
            await stranger.post("/v1/compactions", json=request("s")),
            await stranger.get("/v1/nowhere"),
        ]

    assert {answer.status_code for answer in answers} == {401}
    assert all(answer.headers["www-authenticate"] == "Bearer" for answer in answers)


async def test_a_credential_without_the_operation_is_403_and_stores_nothing(app: App, operator: Caller) -> None:
    reader = await apps.new_principal(app, operator.tenant_id, MEMBER - {"compact", "publish"})

    async with apps.client(app, reader) as http:
        answer = await http.post("/v1/compactions", json=request("s"))

    assert (answer.status_code, answer.json()["type"].rsplit(":", 1)[-1]) == (403, "forbidden")
    assert sum((await rows(app, operator.tenant_id)).values()) == 0


async def test_publishing_needs_its_operation(app: App, operator: Caller) -> None:
    member = await apps.new_principal(app, operator.tenant_id, MEMBER - {"publish"})

    async with apps.client(app, member) as http:
        answer = await http.post("/v1/compactions", json=request("s", visibility="public"))

    assert answer.status_code == 403
    assert sum((await rows(app, operator.tenant_id)).values()) == 0


async def test_another_visibility_than_the_sessions_own_is_409(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    await http.post("/v1/compactions", json=request("s", visibility="personal"))
    before = await rows(app, operator.tenant_id)

    conflict = await http.post("/v1/compactions", json=request("s", window(mark="beta"), visibility="conversation"))
    silent = await http.post("/v1/compactions", json=request("s", window(mark="gamma")))

    assert (conflict.status_code, conflict.json()["type"].rsplit(":", 1)[-1]) == (409, "visibility-conflict")
    assert silent.status_code == 201
    assert (await rows(app, operator.tenant_id))["runs"] == before["runs"] + 1


async def test_a_body_and_a_message_beyond_the_bounds_are_413(app: App, operator: Caller, http: httpx.AsyncClient) -> None:
    long = json.dumps(request("s", [{"role": "user", "content": "x" * (5 * 1024 * 1024 + 1)}])).encode()
    longer = b'{"session": "' + b"s" * (32 * 1024 * 1024) + b'"}'

    message = await http.post("/v1/compactions", content=long)
    body = await http.post("/v1/compactions", content=longer)

    assert (message.status_code, body.status_code) == (413, 413)
    said = "/window/messages/0 has 5,242,909 bytes, and 5,242,880 are taken (COATCHECK_MAX_MESSAGE_BYTES)"
    assert said in message.json()["detail"]
    assert [error["pointer"] for error in message.json()["errors"]] == ["/window/messages/0"]
    assert "33,554,447 bytes, and 33,554,432 are taken (COATCHECK_MAX_BODY_BYTES)" in body.json()["detail"]
    assert sum((await rows(app, operator.tenant_id)).values()) == 0


async def test_the_same_request_for_an_erased_run_is_410_and_another_key_stores_anew(http: httpx.AsyncClient) -> None:
    first = (await http.post("/v1/compactions", json=request("s"))).json()
    assert (await http.delete(f"/v1/manifests/{first['manifest_id']}")).status_code == 204

    same = await http.post("/v1/compactions", json=request("s"))
    anew = await http.post("/v1/compactions", json=request("s"), headers={"Idempotency-Key": "again"})

    assert (same.status_code, same.json()["type"].rsplit(":", 1)[-1]) == (410, "erased")
    assert anew.status_code == 201


async def test_the_same_request_for_an_erased_session_is_410_too(http: httpx.AsyncClient) -> None:
    first = (await http.post("/v1/compactions", json=request("s"))).json()
    assert (await http.delete(f"/v1/sessions/{first['session_id']}")).status_code == 204

    same = await http.post("/v1/compactions", json=request("s"))
    by_id = await http.post("/v1/compactions", json=request(first["session_id"]))
    other = await http.post("/v1/compactions", json=request("s", window(mark="beta")))

    assert (same.status_code, by_id.status_code, other.status_code) == (410, 410, 201)
    assert other.json()["session_id"] != first["session_id"]


@pytest.mark.parametrize("key", ["", "k" * 256, '"unclosed', "a\x01b"])
async def test_a_bad_idempotency_key_is_refused(http: httpx.AsyncClient, key: str) -> None:
    answer = await http.post("/v1/compactions", json=request("s"), headers={b"Idempotency-Key": key.encode()})

    assert answer.status_code == 422


@pytest.mark.parametrize("deadline", ["0", "-1", "soon", "inf", "nan", "99999999"])
async def test_a_bad_deadline_is_refused(http: httpx.AsyncClient, deadline: str) -> None:
    answer = await http.post("/v1/compactions", json=request("s"), headers={"Coatcheck-Deadline": deadline})

    assert answer.status_code == 422


BAD_RECALLS: list[dict[str, object]] = [
    {},
    {"query": ""},
    {"query": "x" * 4_001},
    {"query": "x", "top_k": 0},
    {"query": "x", "top_k": 51},
    {"query": "x", "roles": ["wizard"]},
    {"query": "x", "rerank": "perhaps"},
    {"query": "x", "since": "0001-01-01T00:00:00+14:00"},
    {"query": "x", "until": "yesterday"},
    {"query": "x", "session": "a\x00b"},
]


@pytest.mark.parametrize("body", BAD_RECALLS)
async def test_a_bad_recall_is_refused(http: httpx.AsyncClient, body: dict[str, object]) -> None:
    assert (await http.post("/v1/recall", json=body)).status_code == 422
