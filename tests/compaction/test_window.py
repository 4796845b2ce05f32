"""A window is taken whole or not at all, and what is refused says where."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from coatcheck.compaction import window
from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.entries import Entry
from coatcheck.domain.errors import CoatcheckError, EmptyWindow, InvalidRequest, InvalidWindow, TooLarge
from coatcheck.domain.messages import PartKind, WindowFormat
from coatcheck.domain.routes import Decision, Route
from coatcheck.formats import get
from tests.compaction.making import LARGE, NOW, assistant, call, result, user

_TOOL_USE: JsonValue = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "bash", "input": {}}]}
_TOOL_RESULT: JsonValue = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}, {"type": "text", "text": "go on"}],
}
_FUNCTION_CALL: JsonValue = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
_FUNCTION_OUTPUT: JsonValue = {"type": "function_call_output", "call_id": "c1", "output": "done"}


def _check(messages: list[JsonValue], wire: WindowFormat = "openai-chat", system: JsonValue = None) -> window.CheckedWindow:
    return window.check(get(wire), messages, system, LARGE)


def _pointer(error: CoatcheckError) -> str:
    return error.errors[0].pointer


@pytest.mark.parametrize(
    ("wire", "messages"),
    [
        ("openai-chat", [user("run it"), call("c1"), result("c1", "done")]),
        ("openai-chat", [call("c1"), result("c1", "one"), call("c1"), result("c1", "two")]),
        ("anthropic", [_TOOL_USE, _TOOL_RESULT]),
        ("openai-responses", [_FUNCTION_CALL, _FUNCTION_OUTPUT]),
        (
            "openai-chat",
            [
                {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "done"},
            ],
        ),
    ],
)
def test_calls_with_their_results_are_taken(wire: WindowFormat, messages: list[JsonValue]) -> None:
    assert len(_check(messages, wire).messages) == len(messages)


@pytest.mark.parametrize(
    ("wire", "messages", "pointer"),
    [
        ("openai-chat", [user("hi"), result("c1", "done")], "/window/messages/1"),
        ("openai-chat", [user("hi"), call("c1")], "/window/messages/1"),
        ("openai-chat", [result("c1", "done"), call("c1")], "/window/messages/0"),
        ("openai-chat", [call("c1"), result("c1", "x"), call("c2"), user("stop")], "/window/messages/2"),
        ("anthropic", [_TOOL_RESULT], "/window/messages/0"),
        ("anthropic", [user("hi"), _TOOL_USE], "/window/messages/1"),
        ("openai-responses", [_FUNCTION_OUTPUT], "/window/messages/0"),
        ("openai-responses", [_FUNCTION_CALL], "/window/messages/0"),
        ("openai-chat", [{"role": "function", "name": "f", "content": "done"}], "/window/messages/0"),
    ],
)
def test_half_of_a_pair_is_refused_with_the_pointer_of_its_message(
    wire: WindowFormat, messages: list[JsonValue], pointer: str
) -> None:
    with pytest.raises(InvalidWindow) as refused:
        _check(messages, wire)

    assert _pointer(refused.value) == pointer


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user("")],
        [user("  \n"), assistant("")],
        [{"role": "assistant", "content": None}],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": [{"type": "text", "text": ""}]}],
    ],
)
def test_a_window_without_content_is_empty(messages: list[JsonValue]) -> None:
    with pytest.raises(EmptyWindow) as refused:
        _check(messages)

    assert _pointer(refused.value) == "/window/messages"


def test_a_system_field_alone_is_no_window() -> None:
    with pytest.raises(EmptyWindow):
        _check([], "anthropic", "Be brief.")


def test_one_empty_message_among_others_is_taken() -> None:
    assert len(_check([user("hello"), assistant("")]).messages) == 2


def test_a_message_beyond_the_bound_is_too_large() -> None:
    with pytest.raises(TooLarge) as refused:
        window.check(get("openai-chat"), [user("small"), user("é" * 600)], None, 1_024)

    assert _pointer(refused.value) == "/window/messages/1"


def test_a_message_of_exactly_the_bound_is_taken() -> None:
    empty = len('{"role":"user","content":""}')

    checked = window.check(get("openai-chat"), [user("x" * (1_024 - empty))], None, 1_024)

    assert len(checked.messages) == 1


def test_no_detail_repeats_content() -> None:
    with pytest.raises(TooLarge) as refused:
        window.check(get("openai-chat"), [user("canary" * 300)], None, 1_024)

    assert "canary" not in repr(refused.value.errors) + refused.value.detail


def test_a_message_nested_beyond_reason_is_refused() -> None:
    deep: JsonValue = "x"
    for _ in range(5_000):
        deep = [deep]

    with pytest.raises(InvalidRequest):
        _check([{"role": "user", "content": "x", "extra": deep}])


def test_times_stand_where_known_and_arrival_where_not() -> None:
    stated = datetime(2026, 1, 2, tzinfo=UTC)

    assert window.moments([stated, None, stated.replace(tzinfo=None)], NOW, 3) == [stated, NOW, stated]
    assert window.moments(None, NOW, 2) == [NOW, NOW]


def test_times_of_another_length_are_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        window.moments([None], NOW, 2)

    assert _pointer(refused.value) == "/window/times"


_KEPT = Decision(Route.KEEP, "router:keep")
_ENTRY = Entry(
    ordinal=0,
    message_index=0,
    part_index=0,
    segment_index=0,
    role="user",
    kind=PartKind.TEXT,
    encoding="string",
    decision=_KEPT,
    segment_sha256="a",
    frame_before='{"role":"user","content":',
    frame_after="}",
    chars=5,
)


def test_dropped_text_is_marked_in_the_rebuilt_window() -> None:
    first = replace(_ENTRY, frame_after="")
    second = replace(
        _ENTRY,
        ordinal=1,
        segment_index=1,
        frame_before="",
        segment_sha256=None,
        decision=Decision(Route.DROP, "router:drop"),
        chars=70,
    )

    _, messages = window.rebuild([second, first], lambda entry: "kept ")

    assert messages == [user("kept [DROPPED: 70 characters]")]


def test_text_that_is_gone_is_marked_and_the_json_stays_json() -> None:
    arguments = replace(_ENTRY, encoding="json", frame_before='{"input":', frame_after=',"type":"tool_use"}')

    _, messages = window.rebuild([arguments], lambda entry: None)

    assert messages == [{"input": "[MISSING: 5 characters]", "type": "tool_use"}]


def test_a_system_field_comes_back_as_the_system_field() -> None:
    system = replace(
        _ENTRY, message_index=window.SYSTEM_INDEX, is_system_field=True, role="system", frame_before="", frame_after=""
    )

    assert window.rebuild([replace(_ENTRY, ordinal=1), system], lambda entry: "text") == ("text", [user("text")])
