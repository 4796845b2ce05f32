"""Windows of each format over the routes: what came in comes back, byte for byte, and means what it meant."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from coatcheck.domain.canonical import to_bytes
from tests.contract.kept import entries, hand_in, read_back
from tests.isolation import secret

PROSE = "The build went on through the night, and nobody could say in the morning what had held it up. " * 20
IMAGE = base64.b64encode(random.Random(7).randbytes(60_000)).decode()
"""Bytes that are no text: what an image looks like to whoever only carries it."""
DATA_URL = f"data:image/png;base64,{IMAGE}"


def chat(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"format": "openai-chat", "messages": [{"role": "user", "content": PROSE}, *messages]}


def anthropic(*messages: dict[str, Any], system: Any = None) -> dict[str, Any]:
    return {"format": "anthropic", "system": system, "messages": [{"role": "user", "content": PROSE}, *messages]}


def responses(*items: dict[str, Any]) -> dict[str, Any]:
    return {"format": "openai-responses", "messages": [{"type": "message", "role": "user", "content": PROSE}, *items]}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def deep(levels: int) -> Any:
    value: Any = "the bottom"
    for level in range(levels):
        value = {"down": value, "level": level} if level % 2 else [value]
    return value


def calls(count: int) -> list[dict[str, Any]]:
    made = [
        {"id": f"call_{n}", "type": "function", "function": {"name": f"tool_{n % 3}", "arguments": json.dumps({"n": n})}}
        for n in range(count)
    ]
    results = [{"role": "tool", "tool_call_id": f"call_{n}", "content": f"result {n}"} for n in reversed(range(count))]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *results]


TOOL_USE: dict[str, Any] = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "bash",
    "input": {"z": 1, "a": deep(60), "f": 1.10, "n": 2**70},
}
THINKING: dict[str, Any] = {"type": "thinking", "thinking": "Which port was it? 8443.", "signature": "EqQB+/CkYIBxgCIkA="}
MIXED: dict[str, Any] = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": [{"type": "text", "text": "exit code 1"}]},
        {"type": "text", "text": "Never mind that, go on.", "cache_control": {"type": "ephemeral"}},
    ],
}

WINDOWS: dict[str, dict[str, Any]] = {
    "lone surrogates": chat(user("a \ud83d lone one, \udc00 and another\ud800"), user("\udfff")),
    "NUL and controls": chat(user("nul \x00, bell \x07, escape \x1b[31m, del \x7f, next line \x85")),
    "emoji, ZWJ and flags": chat(user("👩‍👩‍👧‍👦 🧑🏽‍🔬 🏳️‍🌈 🇩🇪 e\u0301 क्षि " * 40)),
    "right to left": chat(user("ابدأ النشر الآن \u202eabc\u202c שלום \u2067x\u2069 " * 60)),
    "Chinese, Japanese, Korean": chat(user("发布分支是 release-2.1。ゲートウェイが遅い。게이트웨이가 느리다. " * 60)),
    "line ends": chat(user("one\r\ntwo\rthree\n\n\u2028four\u2029five\x0b")),
    "what is no scalar in keys": chat({**user("x"), "\ud800": {"\x00": 1, "": None}}),
    "numbers": chat({**user("x"), "n": [0, -0.0, 1e300, 5e-324, 0.1, 2**64, -(2**70), 1.0, 100000.0]}),
    "deep tool input": anthropic({"role": "assistant", "content": [TOOL_USE]}, MIXED),
    "an image as a data URL": chat(
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": DATA_URL, "detail": "low"}}]}
    ),
    "an image as an Anthropic source": anthropic(
        {"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
            {"type": "text", "text": "what is this?"},
        ]}
    ),
    "an image as a Responses input": responses(
        {"role": "user", "content": [{"type": "input_image", "image_url": DATA_URL}]}
    ),
    "a mixed user message": anthropic({"role": "assistant", "content": [TOOL_USE]}, MIXED),
    "signed thinking": anthropic({"role": "assistant", "content": [THINKING, {"type": "text", "text": "8443."}]}),
    "redacted thinking": anthropic({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "Eu8DC+/="}]}),
    "a system string": anthropic(user("x"), system="Be brief.\n\nNever push to main."),
    "a system of blocks": anthropic(
        user("x"),
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": ""}],
    ),
    "ten parallel calls": chat(*calls(10)),
    "a legacy function call": chat(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "done"},
    ),
    "Responses items": responses(
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look at the port."}],
         "encrypted_content": "gAAAAABk+/="},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "run", "arguments": '{"b":1,  "a":2}', "status": "ok"},
        {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "ports"}},
        {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "8443.", "annotations": []}]},
        {"type": "tomorrow", "payload": {"x": [1, None, True]}},
    ),
    "unknown blocks and keys": chat(
        {"role": "user", "content": [{"type": "hologram", "text": "hi", "depth": 3}], "ts": 1_700_000_000.25, "_agent": {"a": []}}
    ),
    "empty pieces": chat(user(""), {"role": "assistant", "content": None}, {"role": "assistant", "content": []}, user(" \n")),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
async def test_a_window_comes_back_byte_for_byte(http: httpx.AsyncClient, name: str) -> None:
    window = WINDOWS[name]

    made = await hand_in(http, "s", window)

    back = await read_back(http, made["manifest_id"])
    assert to_bytes(back["messages"]) == to_bytes(window["messages"])
    assert to_bytes(back["system"]) == to_bytes(window.get("system"))
    assert back["format"] == window["format"]
    assert made["redactions"]["total"] == 0


@pytest.mark.parametrize("name", WINDOWS)
async def test_the_format_need_not_be_told(http: httpx.AsyncClient, name: str) -> None:
    window = {key: value for key, value in WINDOWS[name].items() if key != "format"}

    made = await hand_in(http, "s", window)

    back = await read_back(http, made["manifest_id"])
    assert to_bytes(back["messages"]) == to_bytes(window["messages"])
    # Plain text is the same in two formats: with nothing else to tell them apart it is taken for chat.
    plain = all(set(m) <= {"role", "content"} and isinstance(m["content"], str) for m in window["messages"])
    assert back["format"] == WINDOWS[name]["format"] or plain


async def test_a_message_of_five_megabytes_comes_back_and_its_last_line_is_found(http: httpx.AsyncClient) -> None:
    last = "the last line of all: restart_the_db failed with status 71\n"
    room = 5 * 1024 * 1024 - len(json.dumps(user(last), separators=(",", ":")))
    line = "worker a heartbeat ok, queue depth 3, lag 12 ms\n"
    text = line * (room // (len(line) + 1)) + last  # a line's end takes two bytes in JSON

    made = await hand_in(http, "s", {"messages": [user(text)]}, deadline_s=300)

    back = await read_back(http, made["manifest_id"])
    assert back["messages"] == [user(text)]
    assert made["handoff"]["chars"] <= 1_900
    found = (await http.post("/v1/recall", json={"query": "restart_the_db failed", "session": "s"})).json()
    assert "restart_the_db failed with status 71" in found["hits"][0]["text"]


async def test_ten_parallel_calls_and_their_results_are_one_group(http: httpx.AsyncClient) -> None:
    made = await hand_in(http, "s", chat(*calls(10), *calls(2)))

    groups: dict[str, list[str]] = {}
    for entry in await entries(http, made["manifest_id"]):
        if entry["kind"] in ("tool_call", "tool_result"):
            groups.setdefault(entry["group_id"], []).append(entry["call_id"])
    assert [len(members) for members in groups.values()] == [20, 4]
    assert {members.count(call) for members in groups.values() for call in members} == {2}


async def test_the_parts_of_a_mixed_message_are_whose_they_are(http: httpx.AsyncClient) -> None:
    made = await hand_in(http, "s", WINDOWS["a mixed user message"])

    said = [(entry["role"], entry["kind"], entry["text"]) for entry in await entries(http, made["manifest_id"])]
    assert ("tool", "tool_result", "exit code 1") in said
    assert ("user", "text", "Never mind that, go on.") in said
    assert [kind for role, kind, _ in said if role == "assistant"] == ["tool_call"]


async def test_an_image_is_stored_once_and_no_piece_of_it_is_a_segment(http: httpx.AsyncClient) -> None:
    block = {"type": "image_url", "image_url": {"url": DATA_URL}}

    made = await hand_in(http, "s", chat({"role": "user", "content": [block, block]}, {"role": "user", "content": [block]}))

    blobs = [entry for entry in await entries(http, made["manifest_id"]) if entry["kind"] == "blob"]
    assert len(blobs) == 3
    assert len({entry["blob_sha256"] for entry in blobs}) == 1
    assert {entry["sha256"] for entry in blobs} == {None}
    assert made["window"]["chars"] < 10_000


@pytest.mark.parametrize("make", [chat, anthropic], ids=["openai-chat", "anthropic"])
async def test_thinking_with_a_secret_is_replaced_whole_and_the_rest_stands(
    http: httpx.AsyncClient, make: Callable[..., dict[str, Any]]
) -> None:
    token = secret.github()
    thought = {"type": "thinking", "thinking": f"The token is {token}, and the port is 8443.", "signature": "EqQBCkYI"}
    answer = {"type": "text", "text": "The port is 8443."}

    made = await hand_in(http, "s", make({"role": "assistant", "content": [thought, THINKING, answer]}))

    back = await read_back(http, made["manifest_id"])
    replaced, *rest = back["messages"][1]["content"]
    assert rest == [THINKING, answer]
    assert "port" not in json.dumps(replaced)
    assert "signature" not in replaced
    assert token not in json.dumps([back, made])
    assert made["redactions"]["total"] >= 1


async def test_a_secret_is_the_same_placeholder_wherever_it_stands(http: httpx.AsyncClient) -> None:
    token = secret.github()
    function = {"name": "deploy", "arguments": json.dumps({"token": token})}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    messages = [user(f"use {token}"), call, {"role": "tool", "tool_call_id": "c", "content": f"denied: {token}"}]

    made = await hand_in(http, "s", chat(*messages))

    back = await read_back(http, made["manifest_id"])
    placeholder = back["messages"][1]["content"].removeprefix("use ")
    assert placeholder.startswith("[REDACTED:github-token:")
    arguments = back["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"token": placeholder}
    assert back["messages"][3]["content"] == f"denied: {placeholder}"
    assert made["redactions"]["by_kind"]["github-token"] == 3


@pytest.mark.parametrize("name", ["ten parallel calls", "a mixed user message", "Responses items"])
async def test_the_handoff_stands_in_the_next_window_of_its_format(http: httpx.AsyncClient, name: str) -> None:
    first = await hand_in(http, "s", WINDOWS[name])
    window = {**WINDOWS[name], "messages": [first["handoff"]["message"], *WINDOWS[name]["messages"]]}

    second = await hand_in(http, "s", window)

    assert second["parent_manifest_id"] == first["manifest_id"]
    back = await read_back(http, second["manifest_id"])
    assert to_bytes(back["messages"]) == to_bytes(window["messages"])


DUPLICATES = [
    '{"role": "user", "content": "a", "content": "b"}',
    '{"role": "user", "content": "x", "meta": {"deep": [{"k": 1, "k": 2}]}}',
    '{"role": "user", "content": "x", "\\u0061": 1, "a": 2}',
]


@pytest.mark.parametrize("message", DUPLICATES)
async def test_a_duplicate_key_anywhere_is_refused(http: httpx.AsyncClient, message: str) -> None:
    body = f'{{"session": "s", "window": {{"messages": [{json.dumps(user(PROSE))}, {message}]}}}}'

    answer = await http.post("/v1/compactions", content=body)

    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (400, "malformed")
    assert (await http.get("/v1/sessions")).json()["sessions"] == []
