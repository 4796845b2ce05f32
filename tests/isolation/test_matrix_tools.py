"""The matrix over MCP: every tool against everybody who may not call it, or may not call it with this."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio

from coatcheck.api.mcp_tools import TOOLS
from coatcheck.app.compose import App
from coatcheck.identity.operations import Operation
from tests import rpc
from tests.api.operations import NOTHING, Ids
from tests.isolation.answers import Said, said
from tests.isolation.claiming import claiming
from tests.isolation.columns import CLAIMS, REFUSED, STRANGERS
from tests.isolation.world import Headers, World, new_world
from tests.windows import window

Arguments = Callable[[Ids], dict[str, Any]]

CALLS: dict[str, tuple[Operation, Arguments]] = {
    "recall_memory": (Operation.RECALL, lambda ids: {"query": "health", "session": str(ids.session)}),
    "read_manifest": (Operation.READ, lambda ids: {"manifest_id": str(ids.manifest)}),
    "read_segment": (Operation.READ, lambda ids: {"sha256": ids.sha256}),
    "compact_context": (
        Operation.COMPACT,
        lambda ids: {"session": str(ids.session), "window": {"messages": window(mark="tools")}},
    ),
}
"""Every tool with the right it needs and arguments that name something."""


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def world(app: App) -> AsyncIterator[World]:
    async with new_world(app) as made:
        yield made


async def call(
    world: World, tool: str, arguments: dict[str, Any], headers: Headers, query: str = "", **params: Any
) -> httpx.Response:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, **params}}
    return await world.http.post(f"/mcp{query}", json=asked, headers={**rpc.HEADERS, **headers})


def problem(answer: httpx.Response) -> dict[str, Any]:
    result = answer.json()["result"]
    assert result["isError"], result
    found: dict[str, Any] = result["structuredContent"]
    return found


def test_every_tool_has_a_row() -> None:
    missing = {tool.name for tool in TOOLS} - set(CALLS)

    assert not missing, f"{missing}: no row in the matrix of tools; add its right and arguments to CALLS"
    assert set(CALLS) == {tool.name for tool in TOOLS}


@pytest.mark.parametrize("column", REFUSED)
@pytest.mark.parametrize("tool", CALLS)
async def test_T01_who_proves_nothing_gets_the_one_refusal(world: World, tool: str, column: str) -> None:
    nowhere = said(await world.http.get("/v1/nowhere"))

    answer = await call(world, tool, CALLS[tool][1](world.theirs), world.refused[column])

    assert said(answer) == nowhere
    assert nowhere.status == 401


@pytest.mark.parametrize("column", STRANGERS)
@pytest.mark.parametrize("tool", CALLS)
async def test_T29_a_stranger_finds_nothing(world: World, tool: str, column: str) -> None:
    stranger, (_, arguments) = world.strangers[column], CALLS[tool]

    there = await call(world, tool, arguments(world.theirs), stranger.headers)
    nowhere = await call(world, tool, arguments(NOTHING), stranger.headers)

    assert said(there) == said(nowhere)
    assert problem(there)["status"] == 404


@pytest.mark.parametrize("tool", CALLS)
async def test_nobody_calls_what_its_credential_does_not_grant(world: World, tool: str) -> None:
    operation, arguments = CALLS[tool]
    without = await world.without(operation)

    there, nowhere = [await call(world, tool, arguments(ids), without) for ids in (world.theirs, NOTHING)]

    assert said(there) == said(nowhere)
    assert problem(there)["status"] == 403


@pytest.mark.parametrize("tool", CALLS)
async def test_a_claim_to_be_of_the_owners_tenant_gives_nothing(world: World, tool: str) -> None:
    mine, theirs = CALLS[tool][1](NOTHING), CALLS[tool][1](world.theirs)
    headers = world.foreigner.caller.headers
    claims = {name: str(world.owner.tenant_id) for name in CLAIMS}
    query = "?" + "&".join(f"{name}={value}" for name, value in claims.items())

    plain = await call(world, tool, mine, headers)
    claimed: list[Said] = [
        said(await call(world, tool, theirs, {**claiming(world.owner.tenant_id, world.owner.principal_id), **headers})),
        said(await call(world, tool, theirs, headers, query)),
        said(await call(world, tool, theirs, headers, _meta=claims)),
    ]
    as_arguments = problem(await call(world, tool, {**theirs, **claims}, headers))

    assert set(claimed) == {said(plain)}
    assert problem(plain)["status"] == 404
    assert as_arguments["status"] == 422


@pytest.mark.parametrize("tool", CALLS)
async def test_the_owner_is_answered(world: World, tool: str) -> None:
    answer = await call(world, tool, CALLS[tool][1](world.theirs), world.owner.caller.headers)

    assert not answer.json()["result"]["isError"], answer.text
