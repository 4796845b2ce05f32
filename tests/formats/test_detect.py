"""A window's format by what only one format has, and the formats by name."""

from __future__ import annotations

import pytest

from coatcheck.domain.canonical import JsonObject, JsonValue
from coatcheck.domain.errors import InvalidRequest
from coatcheck.formats import FORMATS, detect, get

HELLO: JsonObject = {"role": "user", "content": "hello"}
CHAT_CALL: JsonObject = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}
CHAT_RESULT: JsonObject = {"role": "tool", "tool_call_id": "c", "content": "42"}
BLOCK_CALL: JsonObject = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
BLOCK_RESULT: JsonObject = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
ITEM_CALL: JsonObject = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], "openai-chat"),
        ([HELLO], "openai-chat"),
        ([{"role": "system", "content": "be brief"}, HELLO], "openai-chat"),
        ([HELLO, CHAT_CALL, CHAT_RESULT], "openai-chat"),
        ([{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}], "openai-chat"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "openai-chat"),
        ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], "openai-chat"),
        ([HELLO, BLOCK_CALL, BLOCK_RESULT], "anthropic"),
        ([{"type": "message", "id": "msg_1", **BLOCK_CALL}], "anthropic"),
        ([HELLO, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "y"}]}], "anthropic"),
        ([{"role": "developer", "content": "be brief"}, HELLO, ITEM_CALL], "openai-responses"),
        ([{"type": "reasoning", "summary": []}], "openai-responses"),
        ([{"type": "item_of_tomorrow"}], "openai-responses"),
        ([{"type": "message", "role": "user", "content": "x"}], "openai-responses"),
        ([{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], "openai-responses"),
        # A gateway's thinking inside chat messages: the calls decide.
        ([{"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}], **CHAT_CALL}, CHAT_RESULT], "openai-chat"),
    ],
)
def test_the_format_of_a_window(messages: list[JsonValue], expected: str) -> None:
    wire = detect(messages, None)

    assert wire.name == expected
    for position, message in enumerate(messages):
        wire.check(message, ("window", "messages", position))


def test_plain_text_beside_a_system_field_is_anthropic() -> None:
    assert detect([HELLO], "be brief").name == "anthropic"


def test_a_system_field_does_not_outvote_the_messages() -> None:
    assert detect([CHAT_CALL, CHAT_RESULT], "be brief").name == "openai-chat"


@pytest.mark.parametrize(
    "messages", [[HELLO, CHAT_CALL, BLOCK_RESULT], [HELLO, BLOCK_CALL, CHAT_RESULT], [HELLO, ITEM_CALL, CHAT_RESULT]]
)
def test_a_window_of_two_formats_is_refused_where_the_second_begins(messages: list[JsonValue]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        detect(messages, None)

    assert caught.value.errors[0].pointer == "/window/messages/2"


def test_what_is_no_message_is_left_to_the_check() -> None:
    wire = detect(["x", 5, None, []], None)

    with pytest.raises(InvalidRequest):
        wire.check("x", ("window", "messages", 0))


def test_the_formats_by_name() -> None:
    assert {name: get(name).name for name in FORMATS} == {name: name for name in FORMATS}

    with pytest.raises(InvalidRequest) as caught:
        get("gemini")
    assert caught.value.errors[0].pointer == "/window/format"
