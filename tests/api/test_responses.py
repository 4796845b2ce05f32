"""Bodies go out as they are, whatever code points they hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from coatcheck.api.responses import AsciiJson, Ndjson, answer
from coatcheck.domain.errors import NotFound
from coatcheck_client.wire import SegmentOut, WindowOut

ANY_TEXT = st.text(st.characters(categories=["L", "N", "S", "Cs", "Cc", "Cn", "Co"]))


@given(ANY_TEXT)
def test_any_text_survives(text: str) -> None:
    body = WindowOut(format="openai-chat", messages=[{"role": "user", "content": text}])

    raw = bytes(answer(body).body)

    assert raw.isascii()
    assert json.loads(raw)["messages"][0]["content"] == text


def test_a_wire_model_is_written_with_all_its_fields() -> None:
    stored_at = datetime(2026, 11, 29, 21, 15, 0, 250_000, timezone(timedelta(hours=1)))
    body = SegmentOut(
        sha256="a", text="t\ud800\0", chars=3, session_id=UUID(int=1), manifest_id=UUID(int=2), ordinal=0, role="user",
        kind="text", stored_at=stored_at,
    )  # fmt: skip

    written = json.loads(bytes(answer(body).body))

    assert written == {
        "sha256": "a", "text": "t\ud800\0", "chars": 3, "session_id": str(UUID(int=1)), "manifest_id": str(UUID(int=2)),
        "ordinal": 0, "role": "user", "kind": "text", "reduced_sha256": None, "reduced_text": None,
        "stored_at": "2026-11-29T20:15:00.250000Z",
    }  # fmt: skip


def test_json_nested_deeper_than_pydantic_follows_is_written() -> None:
    nested: Any = "leaf"
    for _ in range(400):
        nested = [nested]

    raw = bytes(answer(WindowOut(format="anthropic", messages=[nested])).body)

    assert raw.count(b"[") == 401


def test_a_value_without_a_json_form_is_refused() -> None:
    with pytest.raises(TypeError):
        AsciiJson({"x": object()})
    with pytest.raises(ValueError, match="not JSON compliant"):
        AsciiJson({"x": float("nan")})


def test_times_are_in_utc() -> None:
    assert AsciiJson(datetime(2026, 1, 2, tzinfo=UTC)).body == b'"2026-01-02T00:00:00Z"'


class Lines:
    """A stream of lines that knows whether it was closed."""

    def __init__(self, count: int) -> None:
        self.closed = False
        self.given = 0
        self.stream = self._lines(count)

    async def _lines(self, count: int) -> AsyncIterator[bytes]:
        try:
            for number in range(count):
                self.given += 1
                yield b"%d\n" % number
        finally:
            self.closed = True


async def play(response: Ndjson, gone_after: int | None = None) -> list[Message]:
    sent: list[Message] = []
    gone = asyncio.Event()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)
        if gone_after is not None and len(sent) > gone_after:
            gone.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    await response({"type": "http"}, receive, send)
    return sent


async def test_a_stream_sends_its_lines_and_ends() -> None:
    lines = Lines(3)

    sent = await play(await Ndjson.begin(lines.stream))

    assert b"".join(m.get("body", b"") for m in sent) == b"0\n1\n2\n"
    assert [m["more_body"] for m in sent[1:]] == [True, True, True, False]
    assert b"content-length" not in dict(sent[0]["headers"])
    assert lines.closed


async def test_an_empty_stream_is_an_empty_answer() -> None:
    sent = await play(await Ndjson.begin(Lines(0).stream))

    assert b"".join(m.get("body", b"") for m in sent) == b""
    assert sent[-1]["more_body"] is False


async def test_a_failure_before_the_first_line_is_an_ordinary_error() -> None:
    async def lines() -> AsyncIterator[bytes]:
        raise NotFound
        yield b""

    with pytest.raises(NotFound):
        await Ndjson.begin(lines())


async def test_a_client_that_goes_away_ends_the_stream_and_closes_its_source() -> None:
    lines = Lines(1_000_000)

    await play(await Ndjson.begin(lines.stream), gone_after=3)

    assert lines.closed
    assert lines.given < 10


async def test_a_send_that_fails_closes_the_source() -> None:
    lines = Lines(10)
    response = await Ndjson.begin(lines.stream)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await response({"type": "http"}, receive, send)

    assert lines.closed
