"""OpenAI chat messages as parts."""

from __future__ import annotations

import pytest

from coatcheck.domain.canonical import JsonObject, JsonValue
from coatcheck.domain.errors import InvalidRequest
from coatcheck.formats import get
from tests.formats.looking import AT, PIXEL, PIXEL_URL, assert_message_laws, classes, keys, parts, refused_at, seen

CHAT = "openai-chat"


@pytest.mark.parametrize(
    ("role", "part_role"),
    [("system", "system"), ("developer", "developer"), ("user", "user"), ("assistant", "assistant"), ("function", "tool")],
)
def test_a_text_message_is_one_part_of_its_role(role: str, part_role: str) -> None:
    message: JsonObject = {"role": role, "content": "hello"}

    [(seen_role, kind, text)] = seen(CHAT, message)

    assert (seen_role, text) == (part_role, "hello")
    assert kind == ("tool_result" if role == "function" else "text")
    assert get(CHAT).role(message) == part_role


def test_parallel_calls_are_parts_with_their_ids_and_names() -> None:
    message: JsonValue = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": '{"path":"/"}'}},
            {"id": "call_2", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
        ],
    }

    found = parts(CHAT, message)

    assert [(part.kind, part.call_id, part.name, part.text) for part in found] == [
        ("tool_call", "call_1", "ls", '{"path":"/"}'),
        ("tool_call", "call_2", "patch", "*** Begin"),
    ]


def test_a_call_whose_arguments_are_an_object_is_one_json_part() -> None:
    call: JsonValue = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": [1, "b"]}}}

    [part] = parts(CHAT, {"role": "assistant", "tool_calls": [call]})

    assert (part.kind, part.encoding, part.text) == ("tool_call", "json", '{"a":[1,"b"]}')


def test_a_call_without_arguments_is_still_a_call() -> None:
    [part] = parts(CHAT, {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}]})

    assert (part.kind, part.call_id, part.name) == ("tool_call", "c", "f")


@pytest.mark.parametrize("key", ["tool_calls", "function_call", "refusal", "audio", "reasoning", "annotations"])
def test_a_field_that_an_sdk_writes_out_as_null_says_nothing(key: str) -> None:
    found = parts(CHAT, {"role": "assistant", "content": "done", key: None})

    assert [(part.kind, part.text) for part in found] == [("text", "done")]


def test_the_body_that_a_call_does_not_have_may_be_null() -> None:
    function: JsonValue = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}, "custom": None}
    custom: JsonValue = {"id": "b", "type": "custom", "function": None, "custom": {"name": "patch", "input": "*** Begin"}}

    found = parts(CHAT, {"role": "assistant", "content": None, "tool_calls": [function, custom]})

    assert [(part.call_id, part.text) for part in found] == [("a", "{}"), ("b", "*** Begin")]


def test_each_text_block_of_a_result_is_a_part_of_the_result() -> None:
    message: JsonValue = {
        "role": "tool",
        "tool_call_id": "call_1",
        "name": "read",
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
    }

    found = parts(CHAT, message)

    assert [(part.role, part.kind, part.call_id, part.name, part.text) for part in found] == [
        ("tool", "tool_result", "call_1", "read", "one"),
        ("tool", "tool_result", "call_1", "read", "two"),
    ]


@pytest.mark.parametrize("rest", [{}, {"content": None}, {"content": []}, {"content": ""}])
def test_a_result_without_content_is_still_the_result_of_its_call(rest: JsonObject) -> None:
    [part] = parts(CHAT, {"role": "tool", "tool_call_id": "call_1", **rest})

    assert (part.kind, part.call_id) == ("tool_result", "call_1")


def test_a_list_of_call_ids_on_a_result_stands_for_its_first() -> None:
    [part] = parts(CHAT, {"role": "tool", "content": "done", "tool_call_ids": ["call_7"]})

    assert (part.kind, part.call_id) == ("tool_result", "call_7")


def test_a_legacy_function_call_and_its_result_are_known_by_name() -> None:
    [call] = parts(CHAT, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}})
    [result] = parts(CHAT, {"role": "function", "name": "f", "content": "42"})

    assert (call.kind, call.call_id, call.name) == ("tool_call", None, "f")
    assert (result.kind, result.role, result.call_id, result.name) == ("tool_result", "tool", None, "f")


def test_reasoning_is_thinking_and_the_string_is_the_block_that_a_secret_replaces() -> None:
    message: JsonObject = {"role": "assistant", "content": "yes", "reasoning_content": "hm", "reasoning": "hm again"}

    assert [(kind, text) for _, kind, text in seen(CHAT, message)] == [
        ("text", "yes"),
        ("thinking", "hm"),
        ("thinking", "hm again"),
    ]
    blocks = {field.path: field.thinking_block for field in get(CHAT).read(message).fields if not field.is_key}
    assert blocks[("reasoning_content",)] == ("reasoning_content",)
    assert blocks[("content",)] is None
    assert get(CHAT).thinking_marker("hm", "[withheld]") == "[withheld]"


def test_signed_thinking_that_gateways_add_is_thinking_with_its_ciphertext_in_the_frame() -> None:
    message: JsonObject = {
        "role": "assistant",
        "content": "yes",
        "thinking_blocks": [{"type": "thinking", "thinking": "step one", "signature": "EqQBCkYI"}],
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "gAAAAB", "id": "rs_1"}],
    }

    found = classes(CHAT, message)

    assert ("assistant", "thinking", "step one") in seen(CHAT, message)
    assert found["/thinking_blocks/0/signature"] == found["/reasoning_details/0/data"] == "ciphertext"
    assert all("EqQBCkYI" not in part.text and "gAAAAB" not in part.text for part in parts(CHAT, message))


def test_images_sounds_and_files_are_blobs_with_their_media_types() -> None:
    message: JsonValue = {
        "role": "user",
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": PIXEL_URL, "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PIXEL}"}},
        ],
    }

    found = parts(CHAT, message)

    assert [(part.kind, part.media_type, part.name) for part in found] == [
        ("text", None, None),
        ("blob", "image/png", None),
        ("blob", "audio/wav", None),
        ("blob", "application/pdf", "a.pdf"),
    ]
    assert found[1].text == PIXEL_URL
    assert found[2].text == PIXEL


def test_a_remote_image_is_carried_and_its_address_is_content() -> None:
    message: JsonObject = {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://u:p@example.org/a.png"}}],
    }

    assert [kind for _, kind, _ in seen(CHAT, message)] == ["opaque"]
    assert classes(CHAT, message)["/content/0/image_url/url"] == "content"


def test_a_refusal_is_text_in_the_message_and_as_a_block() -> None:
    assert seen(CHAT, {"role": "assistant", "content": None, "refusal": "no"}) == [("assistant", "text", "no")]
    assert seen(CHAT, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}) == [("assistant", "text", "no")]


def test_keys_of_no_known_meaning_are_carried_as_content() -> None:
    message: JsonObject = {
        "role": "assistant",
        "content": "done",
        "agent": "main",
        "_private": {"why": "because"},
        "annotations": [{"type": "url_citation", "url_citation": {"title": "t"}}],
        "ts": 1783376868634,
    }

    found = classes(CHAT, message)

    assert found["/agent"] == found["/_private/why"] == found["/annotations/0/url_citation/title"] == "content"
    assert {"/agent", "/_private", "/_private/why"} <= keys(CHAT, message)
    assert seen(CHAT, message) == [("assistant", "text", "done")]
    assert_message_laws(CHAT, message)


@pytest.mark.parametrize("message", [{"role": "user"}, {"role": "user", "content": None}, {"role": "assistant", "content": []}])
def test_a_message_without_content_is_one_opaque_part(message: JsonObject) -> None:
    [part] = parts(CHAT, message)

    assert (part.kind, part.encoding, part.frame_before, part.frame_after) == ("opaque", "json", "", "")


def test_ids_and_roles_are_structural_and_names_are_content() -> None:
    message: JsonObject = {
        "role": "assistant",
        "id": "msg_1",
        "content": "x",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }

    found = classes(CHAT, message)

    assert {at for at, kind in found.items() if kind == "structural"} == {"/role", "/id", "/tool_calls/0/id", "/tool_calls/0/type"}
    assert found["/tool_calls/0/function/name"] == found["/tool_calls/0/function/arguments"] == "content"


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ("text", ""),
        (None, ""),
        ([], ""),
        ({}, "/role"),
        ({"role": 3, "content": "x"}, "/role"),
        ({"role": "narrator", "content": "x"}, "/role"),
        ({"role": "user", "content": 5}, "/content"),
        ({"role": "user", "content": {"type": "text", "text": "x"}}, "/content"),
        ({"role": "user", "content": ["x"]}, "/content/0"),
        ({"role": "user", "content": [{"text": "x"}]}, "/content/0/type"),
        ({"role": "user", "content": [{"type": "text"}]}, "/content/0/text"),
        ({"role": "user", "content": [{"type": "text", "text": None}]}, "/content/0/text"),
        ({"role": "tool", "content": "x"}, "/tool_call_id"),
        ({"role": "tool", "tool_call_id": 7, "content": "x"}, "/tool_call_id"),
        ({"role": "tool", "tool_call_id": "c", "content": False}, "/content"),
        ({"role": "assistant", "tool_calls": {}}, "/tool_calls"),
        ({"role": "assistant", "tool_calls": ["x"]}, "/tool_calls/0"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, "/tool_calls/0/id"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "/tool_calls/0/function"),
        ({"role": "assistant", "tool_calls": [{"id": "c", "function": {}}]}, "/tool_calls/0/function/name"),
        ({"role": "assistant", "function_call": "f"}, "/function_call"),
    ],
)
def test_a_bad_shape_is_refused_at_its_place(message: JsonValue, where: str) -> None:
    assert refused_at(CHAT, message) == f"/window/messages/3{where}"


def test_a_message_nested_beyond_reason_is_refused_and_not_a_crash() -> None:
    deep: JsonValue = "x"
    for _ in range(5_000):
        deep = [deep]

    assert refused_at(CHAT, {"role": "user", "content": "hi", "extra": deep}) == "/window/messages/3"


def test_a_system_field_is_refused_because_the_system_prompt_is_a_message_here() -> None:
    get(CHAT).check_system(None, ("window", "system"))
    with pytest.raises(InvalidRequest) as caught:
        get(CHAT).check_system("be brief", ("window", "system"))
    assert caught.value.errors[0].pointer == "/window/system"


def test_the_handoff_is_a_user_message() -> None:
    handoff = get(CHAT).handoff_message("map")

    assert handoff == {"role": "user", "content": "map"}
    assert get(CHAT).check(handoff, AT) == handoff
