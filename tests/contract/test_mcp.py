"""MCP over HTTP: the four tools, their errors as tools say them, and the same reader, deadline and limits as the routes."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from coatcheck.app.compose import App
from tests import apps, rpc
from tests.apps import Caller
from tests.contract.stored import rows
from tests.windows import request, window

TOOLS = {"recall_memory", "read_manifest", "read_segment", "compact_context"}


async def compacted(http: httpx.AsyncClient, messages: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    answer = await rpc.call(http, "compact_context", **request("s", messages))
    assert not answer["isError"], rpc.text(answer)
    value: dict[str, Any] = answer["structuredContent"]
    return value


async def test_a_host_initialises_and_is_told_the_tools_with_their_arguments(http: httpx.AsyncClient) -> None:
    greeted = await rpc.result(
        http, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
    )
    noted = await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=rpc.HEADERS)
    listed = (await rpc.result(http, "tools/list"))["tools"]

    assert greeted["serverInfo"]["name"] == "coatcheck"
    assert "tools" in greeted["capabilities"]
    assert noted.status_code == 202
    assert {tool["name"] for tool in listed} == TOOLS
    for tool in listed:
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
    (recall,) = [tool["inputSchema"] for tool in listed if tool["name"] == "recall_memory"]
    assert recall["required"] == ["query"]
    assert recall["properties"]["top_k"]["maximum"] == 50


async def test_the_names_in_a_handoff_are_the_names_of_the_tools(http: httpx.AsyncClient) -> None:
    handoff = (await compacted(http))["handoff"]["text"]

    assert all(f"{tool}(" in handoff for tool in TOOLS - {"compact_context"})


async def test_what_is_handed_in_by_tool_is_found_and_read_by_tool(http: httpx.AsyncClient) -> None:
    made = await compacted(http)

    found = await rpc.call(http, "recall_memory", query="10.2.0.2:8443 failed with 502", session="s")
    manifest = await rpc.call(http, "read_manifest", manifest_id=made["manifest_id"])
    hit = found["structuredContent"]["hits"][0]
    segment = await rpc.call(http, "read_segment", sha256=hit["sha256"][:12])

    assert rpc.text(found) == found["structuredContent"]["rendered"]
    assert "failed with 502" in hit["text"]
    assert rpc.text(segment) == hit["text"]
    assert hit["sha256"] in {entry["sha256"] for entry in manifest["structuredContent"]["entries"]}
    assert json.loads(rpc.text(manifest)) == manifest["structuredContent"]


async def test_the_same_request_by_tool_and_by_route_is_one_run(http: httpx.AsyncClient) -> None:
    by_route = await http.post("/v1/compactions", json=request("s"))

    by_tool = await compacted(http)

    assert by_tool == by_route.json()
    back = await http.get(f"/v1/manifests/{by_tool['manifest_id']}/window")
    assert back.json()["messages"] == window()


async def test_a_manifest_is_read_page_after_page(http: httpx.AsyncClient) -> None:
    made = await compacted(http, window(calls=120, filler=1))

    ordinals: list[int] = []
    token: str | None = None
    while True:
        page = await rpc.call(http, "read_manifest", manifest_id=made["manifest_id"], page_token=token)
        ordinals += [entry["ordinal"] for entry in page["structuredContent"]["entries"]]
        token = page["structuredContent"]["next_page_token"]
        if token is None:
            break

    assert ordinals == list(range(242))


ERRORS: list[tuple[str, dict[str, Any], int, str]] = [
    ("recall_memory", {}, 422, "invalid-request"),
    ("recall_memory", {"query": "x", "session": "nobody's"}, 404, "not-found"),
    ("recall_memory", {"query": "x", "top_k": 51}, 422, "invalid-request"),
    ("recall_memory", {"query": "x", "colour": "blue"}, 422, "invalid-request"),
    ("read_manifest", {"manifest_id": "no id"}, 422, "invalid-request"),
    ("read_manifest", {"manifest_id": str(uuid4())}, 404, "not-found"),
    ("read_segment", {"sha256": "0" * 64}, 404, "not-found"),
    ("read_segment", {"sha256": "abc"}, 422, "invalid-request"),
    ("compact_context", {"session": "s", "window": {"messages": []}}, 422, "empty-window"),
    ("compact_context", request("s", [{"role": "user", "content": "hello"}]), 422, "no-progress"),
    ("compact_context", request("s", [*window(), {"role": "tool", "tool_call_id": "x", "content": "y"}]), 422, "invalid-window"),
    ("compact_context", request("s", parent_manifest_id=str(uuid4())), 422, "invalid-request"),
    ("no_such_tool", {}, 404, "not-found"),
]


@pytest.mark.parametrize(("tool", "arguments", "status", "slug"), ERRORS)
async def test_an_error_is_an_answer_that_the_model_can_read(
    app: App, operator: Caller, http: httpx.AsyncClient, tool: str, arguments: dict[str, Any], status: int, slug: str
) -> None:
    answer = await rpc.call(http, tool, **arguments)

    problem = answer["structuredContent"]
    assert answer["isError"] is True
    assert json.loads(rpc.text(answer)) == problem
    assert (problem["status"], problem["type"].rpartition(":")[2]) == (status, slug)
    assert problem["retryable"] is False
    assert sum((await rows(app, operator.tenant_id)).values()) == 0


async def test_what_was_erased_is_said_to_be(http: httpx.AsyncClient) -> None:
    made = await compacted(http)
    assert (await http.delete(f"/v1/manifests/{made['manifest_id']}")).status_code == 204

    again = await rpc.call(http, "compact_context", **request("s"))
    read = await rpc.call(http, "read_manifest", manifest_id=made["manifest_id"])

    assert [answer["structuredContent"]["status"] for answer in (again, read)] == [410, 410]


async def test_arguments_are_read_as_exactly_as_over_http(http: httpx.AsyncClient) -> None:
    odd: dict[str, Any] = {"role": "user", "n": [2**80, 1e300, -0.0, 1.10], "content": "lone \ud83d, nul \x00. " + "filler " * 300}
    arguments = {"session": "s", "window": {"messages": [odd]}}
    body = json.dumps(rpc.message("tools/call", {"name": "compact_context", "arguments": arguments})).encode("ascii")

    answer = await http.post("/mcp", content=body, headers=rpc.HEADERS)

    made = answer.json()["result"]["structuredContent"]
    back = (await http.get(f"/v1/manifests/{made['manifest_id']}/window")).json()
    assert json.dumps(back["messages"]) == json.dumps([odd])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b'{"jsonrpc": "2.0", "id": 1}',
        b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": true, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}',
        b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall_memory", "arguments": {"query": NaN}}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {"query": "x", "query": "y"}}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}}",
    ],
)
async def test_a_body_that_is_no_message_is_malformed(http: httpx.AsyncClient, body: bytes) -> None:
    answer = await http.post("/mcp", content=body, headers=rpc.HEADERS)

    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (400, "malformed")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_there_is_no_stream_to_hang_on(http: httpx.AsyncClient, method: str) -> None:
    answer = await http.request(method, "/mcp", headers=rpc.HEADERS)

    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


async def test_a_method_that_is_not_served_is_said_to_be(http: httpx.AsyncClient) -> None:
    assert (await rpc.post(http, "resources/list")).json()["error"]["code"] == -32601


async def test_a_stranger_is_refused_before_a_message_is_read(app: App) -> None:
    async with apps.client(app) as stranger:
        answers = [await rpc.post(stranger, "tools/list"), await stranger.post("/mcp", content=b"{"), await stranger.get("/mcp")]

    assert {answer.status_code for answer in answers} == {401}


async def test_a_recall_keeps_its_deadline(http: httpx.AsyncClient) -> None:
    asked = rpc.message("tools/call", {"name": "recall_memory", "arguments": {"query": "x"}})

    answer = await http.post("/mcp", json=asked, headers={**rpc.HEADERS, "Coatcheck-Deadline": "0.000001"})

    problem = answer.json()["result"]["structuredContent"]
    assert (problem["status"], problem["retryable"]) == (503, True)
    assert problem["type"].endswith(":overloaded")


async def test_what_is_compacted_by_tool_is_counted_as_what_comes_by_route(http: httpx.AsyncClient) -> None:
    await compacted(http)

    metrics = (await http.get("/metrics")).text

    created = [line for line in metrics.splitlines() if "compactions" in line and '"created"' in line]
    assert created
    assert float(created[0].rpartition(" ")[2]) >= 1


@pytest.mark.parametrize(
    ("announced", "status"),
    [
        (["application/json"], 200),
        (["Application/JSON; charset=utf-8"], 200),
        (["text/plain"], 400),
        (["application/json-rpc"], 400),
        (["application/json", "text/plain"], 400),
        ([], 400),
    ],
)
async def test_a_message_that_is_not_announced_as_json_is_refused_by_a_problem(
    http: httpx.AsyncClient, announced: list[str], status: int
) -> None:
    fields = [("Accept", rpc.HEADERS["Accept"]), *(("Content-Type", one) for one in announced)]

    answer = await http.post("/mcp", content=b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}', headers=fields)

    assert answer.status_code == status, answer.text
    if status == 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"].endswith(":malformed")
