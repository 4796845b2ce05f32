"""Messages of each wire format: leaf by leaf, with their keys, structural ids checked, ciphertext and blobs untouched."""

from __future__ import annotations

import base64
import json
import random

import pytest

from coatcheck.compaction.redaction import THINKING_MARKER, Redactor
from coatcheck.domain.canonical import JsonObject, JsonValue, Path, to_text, value_at
from coatcheck.domain.errors import InvalidRequest
from coatcheck.domain.messages import WindowFormat
from coatcheck.formats import get
from tests.compaction.redaction.fakes import KEYS, Fakes

FAKES = Fakes(31)
GITHUB, PASSWORD = FAKES.github(), FAKES.password()


def _redact(redactor: Redactor, format_name: WindowFormat, message: JsonObject) -> JsonObject:
    wire = get(format_name)
    once = redactor.redact_message(wire, message, KEYS, at=("window", "messages", 0))
    twice = redactor.redact_message(wire, once.message, KEYS, at=("window", "messages", 0))
    assert twice.message == once.message
    return once.message


def _string_at(message: JsonObject, path: Path) -> str:
    value = value_at(message, path)
    assert isinstance(value, str)
    return value


def _object_at(message: JsonObject, path: Path) -> JsonObject:
    value = value_at(message, path)
    assert isinstance(value, dict)
    return value


def test_a_message_without_a_secret_is_returned_as_it_is(redactor: Redactor) -> None:
    message: JsonObject = {"role": "user", "content": "run the tests", "name": "bob"}

    redacted = redactor.redact_message(get("openai-chat"), message, KEYS, at=())

    assert redacted.message is message
    assert not redacted.counts


def test_tool_arguments_are_redacted_inside_their_json_and_keep_its_form(redactor: Redactor) -> None:
    arguments = json.dumps({"command": f"curl -u bob:{PASSWORD} https://host.example", "note": 'say "hi"\n', "n": 1.50})
    call: JsonObject = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": arguments}}

    redacted = _redact(redactor, "openai-chat", {"role": "assistant", "content": None, "tool_calls": [call]})

    text = to_text(redacted)
    assert PASSWORD not in text
    written = _string_at(redacted, ("tool_calls", 0, "function", "arguments"))
    assert json.loads(written)["note"] == 'say "hi"\n'
    assert '", "note": "' in written


def test_arguments_without_a_secret_keep_every_character(redactor: Redactor) -> None:
    arguments = '{ "a" : "b\\/c" ,"token_count": 12, "u":"\\u00e9" }'
    call: JsonObject = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": arguments}}
    message: JsonObject = {"role": "assistant", "content": "", "tool_calls": [call]}

    assert _redact(redactor, "openai-chat", message) == message


def test_a_password_known_by_its_key_alone_goes(redactor: Redactor) -> None:
    tool_input: JsonValue = {"user": "bob", "password": "swordfish", "nested": {"clientSecret": FAKES.opaque(24)}}
    block: JsonValue = {"type": "tool_use", "id": "toolu_01", "name": "login", "input": tool_input}

    redacted = to_text(_redact(redactor, "anthropic", {"role": "assistant", "content": [block]}))

    assert "swordfish" not in redacted
    assert '"user":"bob"' in redacted
    assert '"clientSecret":"[REDACTED:secret:' in redacted


def test_a_value_named_by_its_neighbour_or_by_the_flag_before_it_goes(redactor: Redactor) -> None:
    tool_input: JsonValue = {"env": [{"name": "DB_PASSWORD", "value": "swordfish"}], "argv": ["login", "--password", "swordfish"]}
    block: JsonValue = {"type": "tool_use", "id": "toolu_01", "name": "run", "input": tool_input}

    redacted = to_text(_redact(redactor, "anthropic", {"role": "assistant", "content": [block]}))

    assert "swordfish" not in redacted
    assert redacted.count("[REDACTED:password:") == 2


def test_a_secret_that_stands_as_a_key_goes_and_the_order_stays(redactor: Redactor) -> None:
    block: JsonValue = {"type": "tool_use", "id": "toolu_01", "name": "run", "input": {"first": 1, GITHUB: {"x": "y"}, "last": 2}}

    redacted = _redact(redactor, "anthropic", {"role": "assistant", "content": [block]})

    keys = list(_object_at(redacted, ("content", 0, "input")))
    assert keys[0] == "first"
    assert keys[1].startswith("[REDACTED:github-token:")
    assert keys[2] == "last"


def test_two_keys_that_become_one_are_kept_apart(redactor: Redactor) -> None:
    spelled = GITHUB[:9] + "\u200b" + GITHUB[9:]
    block: JsonValue = {"type": "tool_use", "id": "toolu_01", "name": "run", "input": {GITHUB: 1, spelled: 2}}

    redacted = redactor.redact_message(get("anthropic"), {"role": "assistant", "content": [block]}, KEYS, at=()).message

    assert list(_object_at(redacted, ("content", 0, "input")).values()) == [1, 2]


def test_a_thinking_block_with_a_secret_is_replaced_whole(redactor: Redactor) -> None:
    thinking: JsonValue = {"type": "thinking", "thinking": f"the token is {GITHUB}, so I use it", "signature": "c2ln"}
    message: JsonObject = {"role": "assistant", "content": [thinking, {"type": "text", "text": "done"}]}

    redacted = to_text(_redact(redactor, "anthropic", message))

    assert THINKING_MARKER in redacted
    assert "so I use it" not in redacted
    assert '"done"' in redacted


def test_ciphertext_and_blobs_are_left_alone(redactor: Redactor) -> None:
    encoded = base64.b64encode(f"password={PASSWORD} ".encode() * 9 + random.Random(1).randbytes(90)).decode()
    image: JsonValue = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded}}
    thinking: JsonValue = {"type": "redacted_thinking", "data": encoded}
    messages: list[JsonObject] = [{"role": "user", "content": [image]}, {"role": "assistant", "content": [thinking]}]

    assert [_redact(redactor, "anthropic", message) for message in messages] == messages


def test_messages_redacted_together_read_as_one_by_one(redactor: Redactor) -> None:
    said = [f"export GITHUB_TOKEN={GITHUB}", "nothing here", f"password={PASSWORD}", f"again {GITHUB}", ""]
    messages: list[JsonObject] = [{"role": "user", "content": text} for text in said]
    wire = get("openai-chat")

    together = redactor.redact_messages(wire, messages, KEYS, at=("window", "messages"))

    assert together == [redactor.redact_message(wire, message, KEYS, at=()) for message in messages]
    assert [bool(redacted.counts) for redacted in together] == [True, False, True, True, False]


def test_of_several_refused_messages_the_first_is_told(redactor: Redactor) -> None:
    messages: list[JsonObject] = [
        {"role": "user", "content": "ok"},
        {"role": "tool", "tool_call_id": GITHUB, "content": "ok"},
        {"role": "tool", "tool_call_id": "\x01", "content": "ok"},
    ]

    with pytest.raises(InvalidRequest) as refused:
        redactor.redact_messages(get("openai-chat"), messages, KEYS, at=("window", "messages"))

    assert refused.value.errors[0].pointer == "/window/messages/1/tool_call_id"


def test_a_secret_in_a_structural_id_is_refused_and_not_rewritten(redactor: Redactor) -> None:
    result: JsonValue = {"type": "tool_result", "tool_use_id": GITHUB, "content": "ok"}

    with pytest.raises(InvalidRequest) as refused:
        redactor.redact_message(get("anthropic"), {"role": "user", "content": [result]}, KEYS, at=("window", "messages", 3))

    assert refused.value.errors[0].pointer == "/window/messages/3/content/0/tool_use_id"
    assert GITHUB not in refused.value.detail


@pytest.mark.parametrize("bad", ["call\n1", "c" * 201, "call\x00"])
def test_a_malformed_structural_id_is_refused(redactor: Redactor, bad: str) -> None:
    result: JsonValue = {"type": "tool_result", "tool_use_id": bad, "content": "ok"}

    with pytest.raises(InvalidRequest) as refused:
        redactor.redact_message(get("anthropic"), {"role": "user", "content": [result]}, KEYS, at=())

    assert refused.value.errors[0].pointer == "/content/0/tool_use_id"


@pytest.mark.parametrize(
    "good", ["toolu_01A09q90qw90lq917835lq9", "call_8Jk2mNq4rTv6wXz0aBcDeFgH", "fc_67ca09c6bedc8190a7abfec07b1a1332"]
)
def test_an_id_of_a_provider_is_no_secret(redactor: Redactor, good: str) -> None:
    result: JsonObject = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": good, "content": "ok"}]}

    assert _redact(redactor, "anthropic", result) == result


def test_the_system_field_is_redacted_as_text_and_as_blocks(redactor: Redactor) -> None:
    wire = get("anthropic")
    as_text = redactor.redact_system(wire, f"use {GITHUB}", KEYS, at=("window", "system"))
    as_blocks = redactor.redact_system(wire, [{"type": "text", "text": f"use {GITHUB}"}], KEYS, at=("window", "system"))

    assert isinstance(as_text.system, str)
    assert as_text.system.startswith("use [REDACTED:github-token:")
    assert as_blocks.counts == {"github-token": 1}


@pytest.mark.parametrize("format_name", ["openai-chat", "openai-responses", "anthropic"])
def test_a_window_of_each_format_loses_its_secret(redactor: Redactor, format_name: WindowFormat) -> None:
    item_type = {"type": "message"} if format_name == "openai-responses" else {}
    message: JsonObject = {**item_type, "role": "user", "content": f"The password is {PASSWORD}, and café \ud800 stays."}

    redacted = to_text(_redact(redactor, format_name, message))

    assert PASSWORD not in redacted
    assert "and café \ud800 stays." in redacted
