"""A client counts a window as the service does, message by message, in the shapes that providers and agents write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coatcheck.cli import demo
from coatcheck.domain.messages import PartKind, WindowFormat, frame
from coatcheck.formats import get
from coatcheck_client.sizes import text_chars

_PROSE = "two lines\nof prose"
_IMAGE = "iVBORw0KGgo="
_TOOLS = [
    {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls -la", "timeout": 5, "all": None}},
    {"type": "server_tool_use", "id": "c2", "name": "web_search", "input": {}},
]
_CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "четыре 四", "name": "somebody", "extra": {"thought": "not text"}},
    {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://e.org/a"}}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_IMAGE}"}}]},
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": _IMAGE, "format": "wav"}}]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "because",
        "action": "an agent's own",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
            {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "*** Begin Patch"}},
            {"id": "c3", "type": "function", "function": {"name": "look", "arguments": {"path": "/srv"}}},
        ],
    },
    {"role": "assistant", "content": "", "function_call": {"name": "old", "arguments": "{}"}},
    {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a.txt"}], "name": "bash"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"path": "a.txt", "lines": 3}, {"path": "b.txt", "lines": 4}]},
    {"role": "tool", "tool_call_id": "c1", "content": [{"path": "a.txt", "found": _PROSE}]},
]
_ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "words"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "well", "signature": "c2lnbmVk"},
            {"type": "redacted_thinking", "data": "c2VhbGVk"},
            *_TOOLS,
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt", "is_error": False}]},
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a.txt"}]},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _IMAGE}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "the document"}, "title": "t"},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"query": "a", "result": _PROSE}]}]},
    {"role": "user", "content": [{"type": "of_tomorrow", "value": 3}]},
]
_RESPONSES: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "words"}]},
    {"role": "user", "content": "words"},
    {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "because"}], "encrypted_content": "c2VhbGVk"},
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "c2VhbGVk"},
    {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
    {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin Patch"},
    {"type": "local_shell_call", "call_id": "c3", "action": {"type": "exec", "command": ["ls"]}},
    {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "a.txt"}]},
    {"type": "mcp_call", "id": "m1", "name": "find", "arguments": "{}", "output": "found"},
    {"type": "image_generation_call", "id": "i1", "result": _IMAGE},
    {"type": "of_tomorrow", "value": 3},
]


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        *(("openai-chat", message) for message in _CHAT),
        *(("anthropic", message) for message in _ANTHROPIC),
        *(("openai-responses", message) for message in _RESPONSES),
    ],
)
def test_a_message_has_as_many_characters_here_as_in_the_service(wire: WindowFormat, message: dict[str, Any]) -> None:
    format_ = get(wire)
    checked = format_.check(message, ())

    parts = frame(checked, format_.read(checked).sites)

    assert text_chars(message) == sum(len(part.text) for part in parts if part.kind is not PartKind.BLOB)


def test_the_demos_transcript_has_as_many_characters_here_as_in_the_service() -> None:
    lines = (Path(demo.__file__).parent / "transcript.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [json.loads(line)["message"] for line in lines]
    wire = get("openai-chat")

    for message in messages:
        parts = frame(message, wire.read(message).sites)
        assert text_chars(message) == sum(len(part.text) for part in parts if part.kind is not PartKind.BLOB)
    assert len(messages) > 100
