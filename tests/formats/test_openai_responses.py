"""OpenAI Responses items as parts."""

from __future__ import annotations

import pytest

from coatcheck.domain.canonical import JsonObject, JsonValue
from coatcheck.domain.errors import InvalidRequest
from coatcheck.formats import get
from tests.formats.looking import AT, PIXEL, PIXEL_URL, assert_message_laws, classes, parts, refused_at, seen

RESPONSES = "openai-responses"


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer"])
@pytest.mark.parametrize("extra", [{}, {"type": "message", "id": "msg_1", "status": "completed", "phase": "commentary"}])
def test_a_message_needs_no_type(role: str, extra: JsonObject) -> None:
    message: JsonObject = {**extra, "role": role, "content": "hello"}

    assert seen(RESPONSES, message) == [(role, "text", "hello")]


def test_the_blocks_of_a_message_are_parts() -> None:
    content: JsonValue = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": PIXEL_URL, "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": PIXEL},
        {"type": "output_text", "text": "seen", "annotations": [], "logprobs": []},
        {"type": "refusal", "refusal": "no"},
    ]

    found = parts(RESPONSES, {"type": "message", "role": "user", "content": content})

    assert [(part.kind, part.name, part.media_type) for part in found] == [
        ("text", None, None),
        ("blob", None, "image/png"),
        ("blob", "a.pdf", None),
        ("text", None, None),
        ("text", None, None),
    ]


def test_a_function_call_is_the_assistants_and_its_output_the_tools() -> None:
    call: JsonObject = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'}
    output: JsonObject = {"type": "function_call_output", "call_id": "call_1", "output": "42"}

    [call_part], [output_part] = parts(RESPONSES, call), parts(RESPONSES, output)

    assert (call_part.role, call_part.kind, call_part.call_id, call_part.name) == ("assistant", "tool_call", "call_1", "f")
    assert (call_part.text, call_part.encoding) == ('{"a":1}', "string")
    assert (output_part.role, output_part.kind, output_part.call_id, output_part.text) == ("tool", "tool_result", "call_1", "42")
    assert classes(RESPONSES, call)["/call_id"] == classes(RESPONSES, call)["/id"] == "structural"


def test_an_output_of_blocks_is_text_and_blobs_of_its_call() -> None:
    output: JsonValue = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PIXEL_URL}]

    found = parts(RESPONSES, {"type": "function_call_output", "call_id": "c", "output": output})

    assert [(part.role, part.kind, part.call_id) for part in found] == [("tool", "tool_result", "c"), ("tool", "blob", "c")]


@pytest.mark.parametrize("rest", [{}, {"output": None}, {"output": []}, {"output": ""}])
def test_an_output_of_nothing_is_still_the_result_of_its_call(rest: JsonObject) -> None:
    [part] = parts(RESPONSES, {"type": "custom_tool_call_output", "call_id": "c", **rest})

    assert (part.role, part.kind, part.call_id) == ("tool", "tool_result", "c")


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "print(1)"}, "print(1)"),
        ({"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}}, '{"command":["ls"]}'),
        ({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}, '{"commands":["ls"]}'),
        ({"type": "apply_patch_call", "call_id": "c", "operation": {"diff": "+x"}}, '{"diff":"+x"}'),
        ({"type": "program", "call_id": "c", "code": "f()", "fingerprint": "abc"}, "f()"),
        ({"type": "call_of_tomorrow_call", "call_id": "c", "arguments": {}}, "{}"),
    ],
)
def test_every_call_that_the_client_answers_is_a_call(item: JsonObject, text: str) -> None:
    [part] = parts(RESPONSES, item)

    assert (part.role, part.kind, part.call_id, part.text) == ("assistant", "tool_call", "c", text)


def test_a_local_shells_output_names_its_call_by_id() -> None:
    [part] = parts(RESPONSES, {"type": "local_shell_call_output", "id": "call_9", "output": "{}"})

    assert (part.kind, part.call_id) == ("tool_result", "call_9")


def test_a_screenshot_is_a_blob_of_its_call() -> None:
    output: JsonValue = {"type": "computer_screenshot", "image_url": PIXEL_URL}

    [part] = parts(RESPONSES, {"type": "computer_call_output", "call_id": "c", "output": output})

    assert (part.role, part.kind, part.call_id) == ("tool", "blob", "c")


def test_a_tool_of_the_provider_is_call_and_result_in_one_item() -> None:
    item: JsonObject = {"type": "mcp_call", "id": "mcp_1", "arguments": "{}", "name": "n", "output": "o", "server_label": "s"}

    found = parts(RESPONSES, item)

    assert [(part.role, part.kind, part.call_id, part.text) for part in found] == [
        ("assistant", "tool_call", "mcp_1", "{}"),
        ("tool", "tool_result", "mcp_1", "o"),
    ]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "mcp_call", "id": "mcp_1", "arguments": "{}", "name": "n", "output": None, "error": "failed"},
        {"type": "mcp_call", "id": "mcp_1", "output": "o", "arguments": "{}", "name": "n"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "tool_search_call", "call_id": None, "arguments": {}},
        {"type": "item_reference", "id": "msg_1"},
        {"id": "msg_1"},
        {"type": "additional_tools", "role": "developer", "tools": []},
        {"type": "image_generation_call", "id": "ig_1", "result": None, "status": "failed"},
        {"type": "item_of_tomorrow", "text": "words", "id": "x"},
    ],
)
def test_an_item_that_nobody_has_to_answer_is_one_opaque_part(item: JsonObject) -> None:
    [part] = parts(RESPONSES, item)

    assert (part.kind, part.encoding, part.frame_before, part.frame_after) == ("opaque", "json", "", "")
    assert_message_laws(RESPONSES, item)


def test_a_generated_image_is_a_blob() -> None:
    found = parts(RESPONSES, {"type": "image_generation_call", "id": "ig_1", "result": PIXEL, "output_format": "webp"})

    assert [(part.kind, part.media_type) for part in found] == [("blob", "image/webp")]


def test_reasoning_is_thinking_whose_block_is_the_item() -> None:
    item: JsonObject = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "first"}],
        "content": [{"type": "reasoning_text", "text": "then"}],
        "encrypted_content": "gAAAAB",
    }

    fields = {field.path: field for field in get(RESPONSES).read(item).fields if not field.is_key}

    assert seen(RESPONSES, item) == [("assistant", "thinking", "first"), ("assistant", "thinking", "then")]
    assert fields[("summary", 0, "text")].thinking_block == ()
    assert fields[("encrypted_content",)].field_class == "ciphertext"
    assert fields[("id",)].field_class == "structural"


def test_reasoning_that_held_a_secret_gives_way_to_a_message_that_the_check_takes() -> None:
    marker = get(RESPONSES).thinking_marker({"type": "reasoning", "summary": []}, "[withheld]")

    assert seen(RESPONSES, marker) == [("assistant", "text", "[withheld]")]


def test_reasoning_without_a_summary_is_opaque() -> None:
    [part] = parts(RESPONSES, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAB"})

    assert part.kind == "opaque"


def test_a_compaction_item_is_opaque_ciphertext() -> None:
    item: JsonObject = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAB"}

    assert [kind for _, kind, _ in seen(RESPONSES, item)] == ["opaque"]
    assert classes(RESPONSES, item)["/encrypted_content"] == "ciphertext"


def test_encrypted_content_of_an_unknown_item_is_content() -> None:
    assert classes(RESPONSES, {"type": "item_of_tomorrow", "encrypted_content": "gAAAAB"})["/encrypted_content"] == "content"


def test_a_structural_key_of_an_unknown_item_is_content_when_it_holds_prose_or_too_much() -> None:
    item: JsonObject = {"type": "item_of_tomorrow", "id": "my key is hunter2", "status": "x" * 201, "phase": "final_answer"}

    found = classes(RESPONSES, item)

    assert (found["/id"], found["/status"], found["/phase"]) == ("content", "content", "structural")


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}, "assistant"),
        ({"type": "function_call_output", "call_id": "c", "output": ""}, "tool"),
        ({"type": "shell_call_output", "call_id": "c", "output": []}, "tool"),
        ({"type": "reasoning", "summary": []}, "assistant"),
        ({"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}, "user"),
        ({"type": "item_of_tomorrow"}, "assistant"),
        ({"role": "developer", "content": "x"}, "developer"),
    ],
)
def test_every_item_has_a_role(item: JsonObject, role: str) -> None:
    assert get(RESPONSES).role(item) == role


@pytest.mark.parametrize(
    ("item", "where"),
    [
        ("x", ""),
        ({}, "/type"),
        ({"type": 3}, "/type"),
        ({"content": "x"}, "/type"),
        ({"role": "tool", "content": "x"}, "/role"),
        ({"type": "message", "content": "x"}, "/role"),
        ({"role": "user", "content": 3}, "/content"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "/content/0/text"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "/call_id"),
        ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "/name"),
        ({"type": "function_call_output", "call_id": "c", "output": True}, "/output"),
    ],
)
def test_a_bad_shape_is_refused_at_its_place(item: JsonValue, where: str) -> None:
    assert refused_at(RESPONSES, item) == f"/window/messages/3{where}"


def test_a_system_field_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        get(RESPONSES).check_system("be brief", ("window", "system"))

    assert caught.value.errors[0].pointer == "/window/system"


def test_the_handoff_is_a_user_message_of_input_text() -> None:
    handoff = get(RESPONSES).handoff_message("map")

    assert get(RESPONSES).check(handoff, AT)["role"] == "user"
    assert seen(RESPONSES, handoff) == [("user", "text", "map")]


@pytest.mark.parametrize("key", ["arguments", "input", "output"])
def test_a_field_that_an_sdk_writes_out_as_null_hides_no_call(key: str) -> None:
    item: JsonObject = {key: None, "type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}

    [part] = parts(RESPONSES, item)

    assert (part.kind, part.call_id, part.text) == ("tool_call", "c", '{"commands":["ls"]}')
