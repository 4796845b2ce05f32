"""The other shapes: lists, requests, SWE-agent, OpenHands, cline, Codex, one message a line; and what is none of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from coatcheck_client.errors import TranscriptError
from coatcheck_client.transcripts import Transcript, parse_transcript, read_transcript

CHAT = [{"role": "system", "content": "be exact"}, {"role": "user", "content": "hello"}]
BLOCKS = [{"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "source": {}}]}]
ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    {"type": "reasoning", "summary": []},
]


def parsed(document: Any) -> Transcript:
    return parse_transcript(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("document", "format", "system", "messages"),
    [
        (CHAT, "openai-chat", None, CHAT),
        ({"model": "m", "messages": CHAT}, "openai-chat", None, CHAT),
        ({"trajectory": [], "history": CHAT, "info": {}}, "openai-chat", None, CHAT),
        ({"messages": CHAT, "tools": [], "context_window": 1}, "openai-chat", None, CHAT),
        ({"model": "m", "system": "be exact", "messages": BLOCKS}, "anthropic", "be exact", BLOCKS),
        ({"system": "be exact", "messages": CHAT[1:]}, "anthropic", "be exact", CHAT[1:]),
        ({"version": 1, "sessionId": "s", "system_prompt": "be exact", "messages": BLOCKS}, "anthropic", "be exact", BLOCKS),
        ({"model": "m", "input": ITEMS}, "openai-responses", None, ITEMS),
        (ITEMS, "openai-responses", None, ITEMS),
    ],
)
def test_every_shape_gives_its_messages_as_they_are(document: Any, format: str, system: Any, messages: list[Any]) -> None:
    read = parsed(document)

    assert (read.format, read.system, list(read.messages)) == (format, system, messages)
    assert len(read.times) == len(messages)


@pytest.mark.parametrize("item", [{"type": "of_next_year", "data": 1}, {"type": "item_reference", "id": "m"}, {"id": "m"}])
def test_an_item_of_a_type_that_nobody_knows_yet_is_left_to_the_service_to_keep(item: dict[str, Any]) -> None:
    items = [item, *ITEMS]

    for raw in (json.dumps(items), json.dumps({"input": items}), "\n".join(map(json.dumps, [*ITEMS, item]))):
        read = parse_transcript(raw.encode())

        assert read.format == "openai-responses"
        assert sorted(map(str, read.messages)) == sorted(map(str, items))
    with pytest.raises(TranscriptError, match="entry 2"):
        parsed([*CHAT, item])


def test_one_message_a_line_is_a_conversation() -> None:
    read = parse_transcript(b"\n".join(json.dumps(m).encode() for m in CHAT) + b"\n")

    assert list(read.messages) == CHAT


def test_a_single_message_on_a_single_line_is_one_too() -> None:
    assert list(parse_transcript(json.dumps(CHAT[1]).encode()).messages) == CHAT[1:]


def test_a_codex_rollout_gives_its_response_items() -> None:
    lines = [
        {"timestamp": "2026-01-02T03:04:05Z", "type": "session_meta", "payload": {"id": "s"}},
        {"timestamp": "2026-01-02T03:04:06Z", "type": "response_item", "payload": ITEMS[0]},
        {"timestamp": "2026-01-02T03:04:07Z", "type": "event_msg", "payload": {"type": "token_count"}},
    ]

    read = parse_transcript("\n".join(map(json.dumps, lines)).encode())

    assert (read.format, read.source, list(read.messages)) == ("openai-responses", "codex", ITEMS[:1])
    assert read.times == (datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC),)
    assert read.warnings == ("1 lines of type event_msg were left out", "1 lines of type session_meta were left out")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("ts", 1_783_376_868_634, datetime(2026, 7, 6, 22, 27, 48, 634_000, tzinfo=UTC)),
        ("timestamp", 1_757_015_046.5, datetime(2025, 9, 4, 19, 44, 6, 500_000, tzinfo=UTC)),
        ("timestamp", "2026-02-12T15:36:09.570Z", datetime(2026, 2, 12, 15, 36, 9, 570_000, tzinfo=UTC)),
        ("created_at", "2026-02-12T15:36:09", datetime(2026, 2, 12, 15, 36, 9, tzinfo=UTC)),
        ("ts", "yesterday", None),
        ("ts", 1e300, None),
        ("ts", True, None),
    ],
)
def test_times_are_read_where_the_log_names_them(key: str, value: Any, expected: datetime | None) -> None:
    assert parsed([{"role": "user", "content": "x", key: value}]).times == (expected,)


def test_what_stands_beside_the_messages_is_named() -> None:
    assert "response" in parsed({"messages": CHAT, "response": {"choices": []}}).warnings[0]
    assert "instructions" in parsed({"input": ITEMS, "instructions": "be exact"}).warnings[0]


def test_a_system_prompt_beside_messages_that_hold_their_own_is_named() -> None:
    read = parsed({"system_prompt": "be exact", "messages": CHAT})

    assert (read.format, read.system) == ("openai-chat", None)
    assert "system prompt" in read.warnings[0]


def test_lone_surrogates_line_separators_and_a_byte_order_mark_are_no_obstacle() -> None:
    raw = '\ufeff{"role": "user", "content": "a\u2028b"}\n{"role": "user", "content": "\\ud83d"}'.encode()

    assert [m["content"] for m in parse_transcript(raw).messages] == ["a\u2028b", "\ud83d"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "empty"),
        (b"\xff\xfe", "UTF-8"),
        (b"hello", "line 1"),
        (b'{"a": 1}', "the keys are: a"),
        (b"3", "list of messages"),
        (b"[]", "empty"),
        (b'[{"role": "user", "content": "x"}, 7]', "entry 1"),
        (b'[{"kind": "event"}]', "entry 0"),
        (b'{"role": "user", "content": "x"}\nnot json\n{"role": "user", "content": "x"}', "line 2"),
        (b"[" * 100_000, "deep"),
    ],
)
def test_an_unknown_shape_is_refused_with_what_was_found(raw: bytes, said: str) -> None:
    with pytest.raises(TranscriptError, match=said):
        parse_transcript(raw)


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="cannot read"):
        read_transcript(tmp_path / "nothing.json")
