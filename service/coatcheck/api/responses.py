"""The one way bodies go out: ASCII-escaped JSON, so that lone surrogates and NUL survive, and NDJSON streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from uuid import UUID

from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class AsciiJson(Response):
    """A JSON body in ASCII. Takes plain JSON values, wire models, UUIDs and times."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        # Not through pydantic's serialiser: it refuses lone surrogates and JSON nested deeper than it will follow.
        return json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_plain).encode("ascii")


def answer(body: BaseModel, status_code: int = 200, headers: Mapping[str, str] | None = None) -> AsciiJson:
    """A wire model as a response."""
    return AsciiJson(body, status_code, headers=dict(headers) if headers else None)


def no_content() -> Response:
    return Response(status_code=204)


class Ndjson(Response):
    """A stream of lines. What fails before the first line is an ordinary problem; afterwards the connection breaks off."""

    media_type = "application/x-ndjson"

    def __init__(self, first: bytes, rest: AsyncIterator[bytes]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._first = first
        self._rest = rest

    @classmethod
    async def begin(cls, lines: AsyncIterator[bytes]) -> Ndjson:
        """Waits for the first line, so that an error that comes instead of it still has a status."""
        return cls(await anext(lines, b""), lines)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_client_gone(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": self._first, "more_body": True})
            async for line in self._rest:
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            await _close(self._rest)


async def _client_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _close(lines: AsyncIterator[bytes]) -> None:
    """Ends the generator where it stands: what it holds open (a transaction) is closed now, not at some collection."""
    close = getattr(lines, "aclose", None)
    if close is not None:
        await close()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} has no JSON form here")
