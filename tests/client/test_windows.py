"""plan_window and cut_windows: nothing is split, nothing is lost, in all three formats."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck_client.pairing import Flaw, Group, groups
from coatcheck_client.sizes import text_chars
from coatcheck_client.windows import HANDOFF_CHARS, cut_windows, plan_window

LONG = "word " * 200


def user(text: str = "go on") -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str = "fine") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def chat_calls(*ids: str) -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": "run", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def chat_result(id: str, text: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


def tool_uses(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "run", "input": {}} for i in ids]}


def tool_results(*ids: str, text: str | None = None) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "tool_result", "tool_use_id": i, "content": "done"} for i in ids]
    return {"role": "user", "content": [*blocks, *([{"type": "text", "text": text}] if text else [])]}


def item_call(id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": "run", "arguments": "{}"}


def item_output(id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": "done"}


def spans(messages: list[Any]) -> list[tuple[int, int]]:
    return [(group.start, group.stop) for group in groups(messages)]


def test_ten_parallel_calls_stay_one_group() -> None:
    ids = [f"c{n}" for n in range(10)]

    chat = [user(), chat_calls(*ids), *(chat_result(i) for i in reversed(ids)), assistant()]
    anthropic = [user(), tool_uses(*ids), tool_results(*ids), assistant()]
    responses = [user(), *(item_call(i) for i in ids), *(item_output(i) for i in ids), assistant()]

    assert spans(chat) == [(0, 1), (1, 12), (12, 13)]
    assert spans(anthropic) == [(0, 1), (1, 3), (3, 4)]
    assert spans(responses) == [(0, 1), (1, 21), (21, 22)]


def test_a_mixed_user_message_stays_with_the_calls_that_it_answers() -> None:
    messages = [tool_uses("a"), tool_results("a", text="and look at the log too"), assistant()]

    assert spans(messages) == [(0, 2), (2, 3)]


def test_a_result_split_over_two_user_messages_keeps_the_batch_together() -> None:
    messages = [tool_uses("a", "b"), tool_results("a"), tool_results("b"), user()]

    assert spans(messages) == [(0, 3), (3, 4)]


def test_a_call_id_used_again_is_another_call() -> None:
    messages = [chat_calls("same"), chat_result("same"), user(), chat_calls("same"), chat_result("same")]

    assert spans(messages) == [(0, 2), (2, 3), (3, 5)]


def test_results_without_an_id_of_their_own_are_matched_by_the_list_of_one() -> None:
    messages = [chat_calls("a"), {"role": "tool", "content": "done", "tool_call_ids": ["a"]}]

    assert groups(messages) == [Group(0, 2)]


def test_legacy_function_calls_are_matched_by_name() -> None:
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "run", "arguments": "{}"}},
        {"role": "function", "name": "run", "content": "done"},
    ]

    assert groups(messages) == [Group(0, 2)]


def test_reasoning_stays_with_the_item_that_follows_it() -> None:
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "fine"}]}

    assert spans([reasoning, answer, user()]) == [(0, 2), (2, 3)]
    assert spans([reasoning, item_call("a"), item_output("a"), user()]) == [(0, 3), (3, 4)]


def test_a_server_tool_is_whole_within_its_message() -> None:
    message = {
        "role": "assistant",
        "content": [
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        ],
    }

    assert groups([message, user()]) == [Group(0, 1), Group(1, 2)]


@pytest.mark.parametrize(
    ("messages", "flaw"),
    [
        ([user(), chat_calls("a", "b"), chat_result("a")], Flaw.UNANSWERED),
        ([user(), tool_uses("a")], Flaw.UNANSWERED),
        ([user(), item_call("a")], Flaw.UNANSWERED),
        ([user(), chat_result("a")], Flaw.ORPHAN),
        ([user(), tool_results("a")], Flaw.ORPHAN),
        ([user(), item_output("a")], Flaw.ORPHAN),
    ],
)
def test_what_is_not_paired_is_left_out_and_named(messages: list[Any], flaw: Flaw) -> None:
    cut = cut_windows(messages)

    assert [window.indices for window in cut.windows] == [(0,)]
    assert [(left.indices, left.reason) for left in cut.left_out] == [(tuple(range(1, len(messages))), flaw.value)]


def test_windows_are_about_as_long_as_asked_and_cover_everything_in_order() -> None:
    messages = [message for n in range(100) for message in (user(LONG), chat_calls(f"c{n}"), chat_result(f"c{n}", LONG))]

    cut = cut_windows(messages, window_chars=10_000)

    assert [i for window in cut.windows for i in window.indices] == list(range(300))
    assert all(8_000 <= window.chars <= 10_000 for window in cut.windows[:-1])


def test_a_tail_shorter_than_a_handoff_joins_the_window_before_it() -> None:
    messages = [user(LONG * 3), user(LONG * 3), user("bye")]

    cut = cut_windows(messages, window_chars=2_500)

    assert [window.indices for window in cut.windows] == [(0,), (1, 2)]


def test_a_window_shorter_than_a_handoff_takes_the_next_group_whatever_its_size() -> None:
    messages = [user("short"), user(LONG * 50), user(LONG * 2)]

    cut = cut_windows(messages, window_chars=5_000)

    assert [window.indices for window in cut.windows] == [(0, 1), (2,)]


def test_one_huge_group_may_be_longer_than_a_window() -> None:
    messages = [user(LONG * 3), chat_calls("a"), chat_result("a", LONG * 100), user(LONG * 3)]

    cut = cut_windows(messages, window_chars=10_000)

    assert [window.indices for window in cut.windows] == [(0,), (1, 2), (3,)]


def test_a_window_stays_below_the_body_limit_where_images_are_large() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 5_000_000}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "look"}, image]} for _ in range(12)]

    cut = cut_windows(messages)

    assert [len(window.messages) for window in cut.windows] == [5, 5, 2]


def test_encoded_binary_content_is_not_counted_as_text() -> None:
    anthropic = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 1_000}}
    chat = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000}}

    assert text_chars({"role": "user", "content": [{"type": "text", "text": "four"}, anthropic, chat]}) < 20


def test_the_plan_keeps_the_task_and_the_recent_tail() -> None:
    messages = [{"role": "system", "content": "be exact"}, user("the task"), *(user(LONG) for _ in range(20))]

    window = plan_window(messages, keep_last=6)

    assert window is not None
    assert (window.start, window.stop) == (2, 16)


def test_the_plan_keeps_as_many_first_messages_as_are_asked_for_and_grows_them_until_no_group_is_split() -> None:
    messages = [user(LONG), chat_calls("a"), chat_result("a", LONG), *(assistant(LONG) for _ in range(10))]

    head = {keep_first: plan_window(messages, keep_first=keep_first, keep_last=2) for keep_first in (0, 2, 5)}

    assert {kept: window.indices[0] for kept, window in head.items() if window is not None} == {0: 0, 2: 3, 5: 5}


def test_the_plan_moves_the_tail_back_rather_than_split_a_group() -> None:
    messages = [user("the task"), *(user(LONG) for _ in range(8)), chat_calls("a", "b"), chat_result("a"), chat_result("b")]

    window = plan_window(messages, keep_last=1)

    assert window is not None
    assert window.stop == 9


def test_the_plan_goes_around_a_call_that_was_never_answered() -> None:
    messages = [user("the task"), user(LONG * 4), chat_calls("lost"), *(user(LONG * 4) for _ in range(3)), user("now")]

    window = plan_window(messages, keep_last=1)

    assert window is not None
    assert (window.start, window.stop) == (3, 6)


def test_there_is_no_plan_where_nothing_would_be_gained() -> None:
    assert plan_window([]) is None
    assert plan_window([user("hello"), assistant("hi")]) is None
    assert plan_window([user("task"), *(user("x" * 300) for _ in range(10))]) is None


def test_the_handoff_takes_the_windows_place() -> None:
    messages = [user("task"), *(user(LONG) for _ in range(10)), user("now")]
    window = plan_window(messages, keep_last=1)
    assert window is not None

    after = window.replaced(messages, assistant("handoff"))

    assert after == [user("task"), assistant("handoff"), user("now")]


def test_a_window_with_a_gap_cannot_be_replaced() -> None:
    cut = cut_windows([user(LONG), chat_calls("lost"), user(LONG)])

    with pytest.raises(ValueError, match="no window"):
        cut.windows[0].replaced([], assistant())


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """Chat conversations with parallel calls, some unanswered, some results that nothing asked for."""
    messages: list[Any] = []
    for turn in range(draw(st.integers(0, 12))):
        size = draw(st.integers(0, 3_000))
        ids = [f"{turn}-{n}" for n in range(draw(st.integers(0, 4)))]
        answered = [i for i in ids if draw(st.integers(0, 9)) > 0]
        messages.append(user("x" * size))
        if ids:
            messages += [chat_calls(*ids), *(chat_result(i, "y" * size) for i in answered)]
        if draw(st.integers(0, 9)) == 0:
            messages.append(chat_result(f"orphan-{turn}"))
    return messages


def is_paired(messages: tuple[Any, ...]) -> bool:
    asked = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    told = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    return sorted(asked) == sorted(told)


@given(conversations(), st.integers(1, 20_000))
def test_every_message_is_in_one_window_or_named_and_every_window_is_paired(messages: list[Any], window_chars: int) -> None:
    cut = cut_windows(messages, window_chars)

    inside = [i for window in cut.windows for i in window.indices]
    outside = [i for left in cut.left_out for i in left.indices]
    assert inside == sorted(inside)
    assert sorted(inside + outside) == list(range(len(messages)))
    assert all(is_paired(window.messages) for window in cut.windows)
    # All but a conversation that is shorter than a handoff altogether.
    assert len(cut.windows) <= 1 or all(window.chars >= HANDOFF_CHARS for window in cut.windows)


@given(conversations(), st.integers(0, 8))
def test_a_plan_is_a_paired_middle(messages: list[Any], keep_last: int) -> None:
    window = plan_window(messages, keep_last=keep_last, min_chars=1)

    if window is not None:
        assert window.indices == tuple(range(window.start, window.stop))
        assert window.stop <= len(messages) - keep_last
        assert is_paired(window.messages)
        assert json.dumps(list(window.messages)) == json.dumps(messages[window.start : window.stop])
