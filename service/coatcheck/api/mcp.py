"""MCP over streamable HTTP, mounted at ``/mcp``. The library is loaded by the first request, since few deployments need it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Receive, Scope, Send

from coatcheck.api.asked import asked_of
from coatcheck.api.mcp_tools import TOOLS, ToolAnswer, call
from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.errors import Draining
from coatcheck.memory.services import Services

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server


class McpDoor:
    """An ASGI app for the mount: stateless, JSON answers, the caller taken from the edge and from nowhere else."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._starting = asyncio.Lock()
        self._stop = asyncio.Event()
        self._app: ASGIApp | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            async with self._starting:
                if self._app is None:
                    await self._start()
        assert self._app is not None
        await self._app(scope, receive, send)

    async def close(self) -> None:
        self._stop.set()
        if self._running is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._running

    async def _start(self) -> None:
        if self._stop.is_set():
            raise Draining
        manager, app = await asyncio.to_thread(_build, self._services)
        ready = asyncio.Event()

        async def run() -> None:
            async with manager.run():
                ready.set()
                await self._stop.wait()

        self._running = asyncio.create_task(run())
        await ready.wait()
        self._app = app


def _build(services: Services) -> tuple[Any, ASGIApp]:
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    # A Host check guards services that trust whoever reaches them; here every request has shown a key that no browser adds.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    manager = StreamableHTTPSessionManager(_server(services), json_response=True, stateless=True, security_settings=security)
    return manager, StreamableHTTPASGIApp(manager)


def _server(services: Services) -> Server[Any]:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(
        _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=tool.name, description=tool.description, input_schema=tool.arguments.model_json_schema())
                for tool in TOOLS
            ]
        )

    async def call_tool(context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        assert context.request is not None
        assert context.request is not None
        asked = asked_of(context.request.scope)
        assert asked.context is not None
        answer = await call(services, asked.context, params.name, params.arguments, asked.deadline_s, asked.request_id)
        return _result(answer)

    return Server("coatcheck", on_list_tools=list_tools, on_call_tool=call_tool)


def _result(answer: ToolAnswer) -> types.CallToolResult:
    import mcp_types as types

    # The library writes UTF-8, which has no lone surrogates: here, unlike over HTTP, they become U+FFFD.
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=scalar_text(answer.text))],
        structured_content=_scalar(answer.value),
        is_error=answer.is_error,
    )


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return scalar_text(value)
    if isinstance(value, dict):
        return {_scalar(key): _scalar(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_scalar(item) for item in value]
    return value
