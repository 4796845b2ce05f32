"""``coatcheck mcp``: MCP over stdio, a bridge to the service's own MCP door, so that tools, scopes and errors are the same.

One JSON-RPC message a line, in and out. Each is sent on as it is; answers come back in the order in which they are ready.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coatcheck_client import AsyncCoatcheck

SERVER_ERROR = -32_000
PARSE_ERROR = -32_700


class Bridge:
    """Carries messages between a host's pipes and the service."""

    def __init__(self, client: AsyncCoatcheck) -> None:
        self._client = client
        self._protocol_version: str | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the host closes its end; what is under way is finished."""
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            if not line.strip():
                continue
            task = asyncio.create_task(self._carry(line))
            self._open.add(task)
            task.add_done_callback(self._open.discard)
            if self._protocol_version is None:
                # The first message settles the protocol's version, which every later one has to name.
                await task
        await asyncio.gather(*self._open)

    async def _carry(self, line: bytes) -> None:
        from coatcheck_client.errors import ClientError

        try:
            message = json.loads(line)
        except ValueError:
            _write(_error(None, PARSE_ERROR, "This line is no JSON."))
            return
        id = message.get("id") if isinstance(message, dict) else None
        try:
            answer = await self._client.mcp_message(line, self._protocol_version)
        except ClientError as error:
            if id is not None:
                _write(_error(id, SERVER_ERROR, str(error)))
            return
        if not answer.strip():
            return
        if isinstance(message, dict) and message.get("method") == "initialize":
            self._protocol_version = _version_in(answer)
        _write(answer)


def _version_in(answer: bytes) -> str | None:
    try:
        version = json.loads(answer)["result"]["protocolVersion"]
    except (ValueError, LookupError, TypeError):
        return None
    return version if isinstance(version, str) else None


def _error(id: Any, code: int, message: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).encode("ascii")


def _write(message: bytes) -> None:
    sys.stdout.buffer.write(message.replace(b"\n", b" ") + b"\n")
    sys.stdout.buffer.flush()
