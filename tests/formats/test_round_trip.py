"""The laws of every format: the parts give the message back exactly, and no string escapes redaction."""

from __future__ import annotations

from hypothesis import given, settings

from coatcheck.domain.canonical import JsonObject, JsonValue, parse_text, to_text
from coatcheck.domain.messages import assemble, frame
from coatcheck.formats import get
from tests.formats.looking import assert_laws, assert_message_laws
from tests.formats.strategies import anthropic_messages, chat_messages, json_values, responses_items


@settings(max_examples=300)
@given(chat_messages())
def test_the_laws_hold_for_chat_messages(message: JsonObject) -> None:
    assert_message_laws("openai-chat", message)


@settings(max_examples=300)
@given(anthropic_messages())
def test_the_laws_hold_for_anthropic_messages(message: JsonObject) -> None:
    assert_message_laws("anthropic", message)


@settings(max_examples=300)
@given(responses_items())
def test_the_laws_hold_for_responses_items(item: JsonObject) -> None:
    assert_message_laws("openai-responses", item)


@given(json_values())
def test_the_laws_hold_for_any_json_beside_a_known_key(value: JsonValue) -> None:
    for name in ("openai-chat", "anthropic", "openai-responses"):
        assert_message_laws(name, {"role": "user", "content": "x", "extra": value})


@given(json_values())
def test_fields_and_sites_take_messages_that_were_never_checked(value: JsonValue) -> None:
    """What redaction rewrote is read again without a check."""
    for name in ("openai-chat", "anthropic", "openai-responses"):
        wire = get(name)
        message: JsonObject = {"role": value, "content": value, "tool_calls": value, "type": value, "output": value}
        assert_laws(message, wire.read(message).fields, wire.read(message).sites)


@given(anthropic_messages())
def test_what_is_put_together_again_is_the_same_json(message: JsonObject) -> None:
    text = assemble(frame(message, get("anthropic").read(message).sites))

    assert to_text(parse_text(text)) == to_text(message)
