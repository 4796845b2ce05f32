"""Anthropic messages and the system field as parts."""

from __future__ import annotations

import pytest

from coatcheck.domain.canonical import JsonObject, JsonValue
from coatcheck.domain.errors import InvalidRequest
from coatcheck.domain.messages import frame
from coatcheck.formats import get
from tests.formats.looking import AT, PIXEL, assert_laws, assert_message_laws, classes, keys, parts, refused_at, seen

ANTHROPIC = "anthropic"
IMAGE: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def user(*blocks: JsonValue) -> JsonObject:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: JsonValue) -> JsonObject:
    return {"role": "assistant", "content": list(blocks)}


def result(**rest: JsonValue) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": "toolu_1", **rest}


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_string_is_one_text_part(role: str) -> None:
    assert seen(ANTHROPIC, {"role": role, "content": "hello"}) == [(role, "text", "hello")]


def test_a_call_is_its_input_as_json_with_every_key_and_string_shown_to_redaction() -> None:
    message = assistant({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls", "env": {"TOKEN": "t"}}})

    [part] = parts(ANTHROPIC, message)

    assert (part.kind, part.encoding, part.call_id, part.name) == ("tool_call", "json", "toolu_1", "Bash")
    assert part.text == '{"command":"ls","env":{"TOKEN":"t"}}'
    assert {"/content/0/input/command", "/content/0/input/env", "/content/0/input/env/TOKEN"} <= keys(ANTHROPIC, message)
    assert classes(ANTHROPIC, message)["/content/0/input/env/TOKEN"] == "content"


def test_what_looks_structural_inside_a_tools_input_is_content() -> None:
    message = assistant({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"type": "x", "id": "y", "signature": "z"}})

    found = classes(ANTHROPIC, message)

    assert {found[f"/content/0/input/{key}"] for key in ("type", "id", "signature")} == {"content"}


def test_a_result_inside_a_user_message_is_the_tools_and_the_text_beside_it_the_users() -> None:
    message = user(result(content="42", is_error=False), {"type": "text", "text": "go on"})

    assert seen(ANTHROPIC, message) == [("tool", "tool_result", "42"), ("user", "text", "go on")]


def test_a_result_of_text_and_an_image_is_two_parts_of_one_call() -> None:
    found = parts(ANTHROPIC, user(result(content=[{"type": "text", "text": "see"}, IMAGE])))

    assert [(part.role, part.kind, part.call_id) for part in found] == [
        ("tool", "tool_result", "toolu_1"),
        ("tool", "blob", "toolu_1"),
    ]


@pytest.mark.parametrize("rest", [{}, {"content": None}, {"content": []}, {"content": ""}, {"is_error": True}])
def test_a_result_without_content_is_still_the_result_of_its_call(rest: JsonObject) -> None:
    [part] = parts(ANTHROPIC, user(result(**rest)))

    assert (part.role, part.kind, part.call_id) == ("tool", "tool_result", "toolu_1")


def test_json_that_a_tool_returned_is_one_part_while_it_is_short() -> None:
    [part] = parts(ANTHROPIC, user(result(content=[{"query": "ls", "success": True}])))

    assert (part.kind, part.encoding, part.text) == ("tool_result", "json", '[{"query":"ls","success":true}]')


def test_prose_in_json_that_a_tool_returned_is_a_part_without_escapes() -> None:
    content: JsonValue = [{"query": "/a.py", "result": "1 | import os\n2 | \n", "success": True}]

    found = parts(ANTHROPIC, user(result(content=content)))

    assert [(part.kind, part.encoding, part.text) for part in found] == [
        ("tool_result", "string", "/a.py"),
        ("tool_result", "string", "1 | import os\n2 | \n"),
    ]


def test_thinking_is_a_part_and_its_signature_stays_in_the_frame() -> None:
    message = assistant({"type": "thinking", "thinking": "let me see", "signature": "EqQBCkYI+/=="}, {"type": "text", "text": "ok"})

    fields = {field.path: field for field in get(ANTHROPIC).read(message).fields}

    assert seen(ANTHROPIC, message) == [("assistant", "thinking", "let me see"), ("assistant", "text", "ok")]
    assert fields[("content", 0, "thinking")].thinking_block == ("content", 0)
    assert fields[("content", 0, "signature")].field_class == "ciphertext"
    assert fields[("content", 1, "text")].thinking_block is None


def test_a_thinking_block_gives_way_to_text_since_the_provider_would_refuse_it_unsigned() -> None:
    block: JsonValue = {"type": "thinking", "thinking": "a secret", "signature": "EqQB"}

    assert get(ANTHROPIC).thinking_marker(block, "[withheld]") == {"type": "text", "text": "[withheld]"}


def test_a_signature_that_cannot_be_one_is_content() -> None:
    message = assistant({"type": "thinking", "thinking": "x", "signature": "the password is hunter2"})

    assert classes(ANTHROPIC, message)["/content/0/signature"] == "content"


def test_redacted_thinking_is_carried_untouched() -> None:
    message = assistant({"type": "redacted_thinking", "data": "EmwKAhgB"}, {"type": "text", "text": "ok"})

    assert seen(ANTHROPIC, message) == [("assistant", "text", "ok")]
    assert classes(ANTHROPIC, message)["/content/0/data"] == "ciphertext"
    assert [kind for _, kind, _ in seen(ANTHROPIC, assistant({"type": "redacted_thinking", "data": "EmwKAhgB"}))] == ["opaque"]


def test_a_compaction_block_is_opaque_and_its_summary_is_content() -> None:
    message = assistant({"type": "compaction", "content": "we did this", "encrypted_content": "gAAAAB"})

    assert [kind for _, kind, _ in seen(ANTHROPIC, message)] == ["opaque"]
    found = classes(ANTHROPIC, message)
    assert (found["/content/0/content"], found["/content/0/encrypted_content"]) == ("content", "ciphertext")


def test_a_server_tool_answers_in_the_assistants_own_message() -> None:
    message = assistant(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "title": "T", "url": "https://e.org", "encrypted_content": "EqRf"}],
        },
        {
            "type": "text",
            "text": "so",
            "citations": [{"type": "web_search_result_location", "cited_text": "c", "encrypted_index": "Eo"}],
        },
    )

    found = parts(ANTHROPIC, message)

    assert [(part.role, part.kind, part.call_id, part.text) for part in found] == [
        ("assistant", "tool_call", "srvtoolu_1", '{"query":"q"}'),
        ("tool", "tool_result", "srvtoolu_1", "T"),
        ("tool", "tool_result", "srvtoolu_1", "https://e.org"),
        ("assistant", "text", None, "so"),
    ]
    assert classes(ANTHROPIC, message)["/content/1/content/0/encrypted_content"] == "ciphertext"
    assert classes(ANTHROPIC, message)["/content/2/citations/0/encrypted_index"] == "ciphertext"


def test_a_server_result_with_nothing_but_ciphertext_is_opaque_and_closes_its_call() -> None:
    content: JsonValue = {"type": "advisor_redacted_result", "encrypted_content": "EqRf"}

    [part] = parts(ANTHROPIC, assistant({"type": "advisor_tool_result", "tool_use_id": "s", "content": content}))

    assert (part.role, part.kind, part.call_id) == ("tool", "opaque", "s")


def test_encrypted_content_in_a_clients_own_result_is_content() -> None:
    message = user(result(content=[{"encrypted_content": "EqRf"}]))

    assert classes(ANTHROPIC, message)["/content/0/content/0/encrypted_content"] == "content"


def test_documents_are_blobs_or_text_by_their_source() -> None:
    pdf: JsonValue = {"type": "base64", "media_type": "application/pdf", "data": PIXEL}
    plain: JsonValue = {"type": "text", "media_type": "text/plain", "data": "plainword"}
    nested: JsonValue = {"type": "content", "content": [{"type": "text", "text": "inner"}, IMAGE]}
    message = user(*({"type": "document", "title": "Doc", "source": source} for source in (pdf, plain, nested)))

    found = parts(ANTHROPIC, message)

    assert [(part.kind, part.name) for part in found] == [("blob", "Doc"), ("text", "Doc"), ("text", "Doc"), ("blob", "Doc")]
    assert found[0].media_type == "application/pdf"
    assert classes(ANTHROPIC, message)["/content/1/source/data"] == "content"


def test_an_image_whose_data_was_left_out_is_content() -> None:
    message = user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "[left out]"}})

    assert classes(ANTHROPIC, message)["/content/0/source/data"] == "content"
    assert [kind for _, kind, _ in seen(ANTHROPIC, message)] == ["opaque"]


@pytest.mark.parametrize(
    "message",
    [
        assistant({"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "direct"}}),
        {**assistant({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}), "usage": {"service_tier": "standard"}},
        {**user({"type": "text", "text": "x"}), "id": "msg_1", "ts": 1, "modelInfo": {"id": "a/b"}, "_private": None},
        user({"type": "container_upload", "file_id": "file_1"}),
        user({"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}], "citations": {}}),
        assistant({"type": "mcp_tool_use", "id": "m", "name": "n", "server_name": "s", "input": None}),
        user({"type": "mcp_tool_result", "tool_use_id": "m", "content": [{"type": "text", "text": "x"}]}),
        {"role": "user", "content": None},
        {"role": "assistant", "content": []},
    ],
)
def test_what_providers_and_agents_add_is_carried(message: JsonObject) -> None:
    assert_message_laws(ANTHROPIC, message)


@pytest.mark.parametrize(
    ("message", "where"),
    [
        (7, ""),
        ({"content": "x"}, "/role"),
        ({"role": "tool", "content": "x"}, "/role"),
        ({"role": "developer", "content": "x"}, "/role"),
        ({"role": "user", "content": 1.5}, "/content"),
        ({"role": "user", "content": {}}, "/content"),
        (user("x"), "/content/0"),
        (user({"type": "text", "text": 1}), "/content/0/text"),
        (user({"type": None}), "/content/0/type"),
        (assistant({"type": "tool_use", "name": "f", "input": {}}), "/content/0/id"),
        (assistant({"type": "tool_use", "id": "t", "input": {}}), "/content/0/name"),
        (user({"type": "tool_result", "content": "x"}), "/content/0/tool_use_id"),
        (user(result(content=5)), "/content/0/content"),
        (user(result(content=[{"type": "text"}])), "/content/0/content/0/text"),
    ],
)
def test_a_bad_shape_is_refused_at_its_place(message: JsonValue, where: str) -> None:
    assert refused_at(ANTHROPIC, message) == f"/window/messages/3{where}"


@pytest.mark.parametrize(
    ("system", "texts"),
    [
        ("be brief", ["be brief"]),
        (
            [{"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "two"}],
            ["one", "two"],
        ),
        ([], ["[]"]),
        ("", [""]),
    ],
)
def test_the_system_field_is_parts_of_the_system(system: JsonValue, texts: list[str]) -> None:
    wire = get(ANTHROPIC)

    wire.check_system(system, ("window", "system"))

    found = frame(system, wire.read_system(system).sites)
    assert [part.text for part in found] == texts
    assert {part.role for part in found} == {"system"}
    assert_laws(system, wire.read_system(system).fields, wire.read_system(system).sites)


@pytest.mark.parametrize(
    ("system", "where"), [(5, ""), ({"type": "text", "text": "x"}, ""), (["x"], "/0"), ([{"type": "text"}], "/0/text")]
)
def test_a_bad_system_field_is_refused_at_its_place(system: JsonValue, where: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        get(ANTHROPIC).check_system(system, ("window", "system"))

    assert caught.value.errors[0].pointer == f"/window/system{where}"


def test_no_system_field_is_fine() -> None:
    get(ANTHROPIC).check_system(None, ("window", "system"))


def test_the_handoff_is_a_user_message_of_one_text_block() -> None:
    handoff = get(ANTHROPIC).handoff_message("map")

    assert get(ANTHROPIC).check(handoff, AT) == {"role": "user", "content": [{"type": "text", "text": "map"}]}
    assert seen(ANTHROPIC, handoff) == [("user", "text", "map")]
