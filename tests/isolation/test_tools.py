"""The MCP tools in foreign hands: the same walls as over HTTP, in the same words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import rpc
from tests.api.operations import NOTHING, Ids
from tests.isolation.town import Person, Town, left_by
from tests.windows import window

OUTSIDERS = ("bob", "dave")
CALLS: dict[str, Any] = {
    "recall_memory": lambda ids: {"query": "tools health", "session": str(ids.session)},
    "read_manifest": lambda ids: {"manifest_id": str(ids.manifest)},
    "read_segment": lambda ids: {"sha256": ids.sha256},
    "compact_context": lambda ids: {"session": str(ids.session), "window": {"messages": window(mark="tools")}},
}


def said(answer: dict[str, Any]) -> dict[str, Any]:
    """All of a tool's answer but what names the one request."""
    assert json.loads(rpc.text(answer)) == answer["structuredContent"]
    return {**answer["structuredContent"], "instance": "", "isError": answer["isError"]}


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("name", OUTSIDERS)
async def test_a_foreign_id_is_answered_as_an_unknown_one(town: Town, name: str, tool: str) -> None:
    ids, person = await left_by(town.alice, f"tools-{name}-{tool}"), town.everybody[name]

    foreign = await rpc.call(person.http, tool, **CALLS[tool](ids))
    unknown = await rpc.call(person.http, tool, **CALLS[tool](NOTHING))

    assert said(foreign) == said(unknown)
    assert (foreign["isError"], foreign["structuredContent"]["status"]) == (True, 404)


@pytest.mark.parametrize("name", OUTSIDERS)
async def test_a_recall_over_everything_holds_nothing_of_others(town: Town, name: str) -> None:
    await left_by(town.alice, "tools-mark")

    found = await rpc.call(town.everybody[name].http, "recall_memory", query="tools-mark health failed", top_k=50)

    assert "tools-mark" not in json.dumps(found)


async def test_the_owner_gets_by_tool_what_it_gets_over_http(town: Town) -> None:
    ids = await left_by(town.alice, "tools-own")

    segment = await rpc.call(town.alice.http, "read_segment", sha256=ids.sha256[:12])
    found = await rpc.call(town.alice.http, "recall_memory", query="tools-own health", session="tools-own")

    assert segment["structuredContent"] == await of_http(town.alice, ids)
    assert all(hit["session_id"] == str(ids.session) for hit in found["structuredContent"]["hits"])


async def test_a_narrow_key_calls_no_tool_that_it_does_not_grant(town: Town) -> None:
    made = await town.operator.http.post("/v1/admin/keys", json={"name": "n", "operations": ["recall"]})
    headers = {**rpc.HEADERS, "Authorization": f"Bearer {made.json()['key']}"}

    statuses = {}
    for tool, arguments in CALLS.items():
        asked = rpc.message("tools/call", {"name": tool, "arguments": {**arguments(NOTHING), **_anywhere(tool)}})
        answer = (await town.operator.http.post("/mcp", json=asked, headers=headers)).json()["result"]
        statuses[tool] = answer["structuredContent"].get("status", 200)

    assert statuses == {"recall_memory": 200, "read_manifest": 403, "read_segment": 403, "compact_context": 403}


def _anywhere(tool: str) -> dict[str, None]:
    return {"session": None} if tool == "recall_memory" else {}


async def of_http(person: Person, ids: Ids) -> Any:
    return (await person.http.get(f"/v1/segments/{ids.sha256}")).json()
