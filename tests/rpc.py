"""Speaking MCP over HTTP in tests: one JSON-RPC message a request, one JSON answer."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_IDS = count(1)


def message(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    asked: dict[str, Any] = {"jsonrpc": "2.0", "id": next(_IDS), "method": method}
    return asked if params is None else {**asked, "params": params}


async def post(http: httpx.AsyncClient, method: str, params: dict[str, Any] | None = None) -> httpx.Response:
    return await http.post("/mcp", json=message(method, params), headers=HEADERS)


async def result(http: httpx.AsyncClient, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """The result of a method that must not fail."""
    answer = await post(http, method, params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["result"]
    return found


async def call(http: httpx.AsyncClient, tool: str, **arguments: object) -> dict[str, Any]:
    """What a tool answers: ``structuredContent``, ``content`` and ``isError``."""
    return await result(http, "tools/call", {"name": tool, "arguments": arguments})


def text(answer: dict[str, Any]) -> str:
    """The one text that a tool answers with."""
    (block,) = answer["content"]
    assert block["type"] == "text"
    said: str = block["text"]
    return said
