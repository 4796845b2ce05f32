"""Blocks of types that no format defines, and blocks of one format inside another's messages."""

from __future__ import annotations

import pytest

from coatcheck.domain.canonical import JsonObject, JsonValue
from coatcheck.formats import FORMATS
from tests.formats.looking import PIXEL, PIXEL_URL, assert_message_laws, classes, keys, parts

EVERY_FORMAT = pytest.mark.parametrize("format_name", sorted(FORMATS))


def user(*blocks: JsonValue) -> JsonObject:
    return {"role": "user", "content": list(blocks)}


@EVERY_FORMAT
def test_the_content_of_an_attached_file_is_text_named_by_its_path(format_name: str) -> None:
    message = user({"type": "file", "path": "/src/a.tsx", "content": '"use client";\n'})

    [part] = parts(format_name, message)

    assert (part.kind, part.text, part.name) == ("text", '"use client";\n', "/src/a.tsx")
    assert classes(format_name, message)["/content/0/path"] == "content"


@EVERY_FORMAT
def test_the_text_of_an_unknown_block_is_text_and_the_rest_is_carried(format_name: str) -> None:
    message = user({"type": "note", "id": "n_1", "text": "words", "meta": {"author": "me"}})

    [part] = parts(format_name, message)

    assert (part.kind, part.text) == ("text", "words")
    found = classes(format_name, message)
    assert (found["/content/0/id"], found["/content/0/meta/author"]) == ("structural", "content")
    assert {"/content/0/meta", "/content/0/meta/author"} <= keys(format_name, message)


@EVERY_FORMAT
def test_an_unknown_block_without_text_is_one_opaque_part(format_name: str) -> None:
    [part] = parts(format_name, user({"type": "widget", "props": {"a": "b"}}))

    assert (part.kind, part.encoding, part.text) == ("opaque", "json", '{"type":"widget","props":{"a":"b"}}')


@EVERY_FORMAT
def test_binary_data_in_an_unknown_block_is_a_blob(format_name: str) -> None:
    message = user({"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{PIXEL}"}}, {"type": "text", "text": "x"})

    assert [part.kind for part in parts(format_name, message)] == ["blob", "text"]


@EVERY_FORMAT
def test_an_image_in_the_form_of_mcp_is_a_blob(format_name: str) -> None:
    [part] = parts(format_name, user({"type": "image", "data": PIXEL, "mimeType": "image/png"}))

    assert (part.kind, part.media_type) == ("blob", "image/png")


@EVERY_FORMAT
def test_a_string_that_is_wholly_an_image_is_a_blob_wherever_it_stands(format_name: str) -> None:
    [part] = parts(format_name, {"role": "user", "content": PIXEL_URL})

    assert (part.kind, part.media_type) == ("blob", "image/png")


@EVERY_FORMAT
def test_text_in_a_data_url_is_no_blob_since_it_can_be_decoded(format_name: str) -> None:
    url = f"data:text/plain;base64,{PIXEL}"

    assert [part.kind for part in parts(format_name, {"role": "user", "content": url})] == ["text"]


@EVERY_FORMAT
def test_a_secret_after_an_images_base64_makes_it_content(format_name: str) -> None:
    message: JsonObject = {"role": "user", "content": f"{PIXEL_URL} and the password is hunter2"}

    assert classes(format_name, message)["/content"] == "content"


@EVERY_FORMAT
@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": [{"type": "text", "text": "a list of texts"}]},
        {"type": "image_url", "image_url": PIXEL_URL},
        {"type": "image_url", "image_url": None},
        {"type": "image", "source": "https://example.org/a.png"},
        {"type": "document", "source": {"type": "content", "content": "a string"}, "context": "c"},
        {"type": "document", "source": {"type": "file", "file_id": "f"}},
        {"type": "encrypted_content", "encrypted_content": "gAAAAB"},
        {"type": "search_result", "source": "s", "title": "t", "content": []},
        {"type": "file", "file": "README"},
        {"type": "", "": ""},
    ],
)
def test_blocks_of_any_provider_pass_in_every_format(format_name: str, block: JsonObject) -> None:
    assert_message_laws(format_name, user(block))


def test_a_word_where_a_file_may_stand_is_not_taken_for_base64() -> None:
    assert classes("openai-chat", user({"type": "file", "file": "README"}))["/content/0/file"] == "content"


def test_json_of_many_strings_stays_one_part() -> None:
    rows: JsonValue = [{"line": f"row {number}\n"} for number in range(300)]

    [part] = parts("anthropic", user({"type": "tool_result", "tool_use_id": "t", "content": rows}))

    assert (part.kind, part.encoding) == ("tool_result", "json")


def test_an_image_in_json_that_a_tool_returned_is_a_blob_and_its_caption_a_part() -> None:
    content: JsonValue = [{"caption": "a chart", "png": PIXEL_URL}]

    found = parts("anthropic", user({"type": "tool_result", "tool_use_id": "t", "content": content}))

    assert [(part.kind, part.call_id) for part in found] == [("tool_result", "t"), ("blob", "t")]


def test_an_image_inside_a_tools_input_stays_in_the_one_part_and_is_not_scanned() -> None:
    message: JsonObject = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"png": PIXEL_URL}}],
    }

    [part] = parts("anthropic", message)

    assert (part.kind, part.text) == ("tool_call", f'{{"png":"{PIXEL_URL}"}}')
    assert classes("anthropic", message)["/content/0/input/png"] == "blob"
