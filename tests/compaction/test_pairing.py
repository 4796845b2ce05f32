"""One assistant batch of calls and its results is one group."""

from __future__ import annotations

from coatcheck.compaction.pairing import pair
from coatcheck.domain.canonical import JsonObject, JsonValue
from coatcheck.domain.messages import WindowFormat
from coatcheck.formats import get
from tests.compaction.making import assistant, call, result, user


def _groups(messages: list[JsonObject], wire: WindowFormat = "openai-chat") -> list[list[str | None]]:
    links = pair([get(wire).read(message).sites for message in messages])
    return [[link.group_id if link else None for link in of_message] for of_message in links]


def test_ten_parallel_calls_and_their_results_stay_one_group() -> None:
    calls: list[JsonValue] = [
        {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for number in range(10)
    ]
    results = [result(f"c{number}", "ok") for number in reversed(range(10))]

    groups = _groups([{"role": "assistant", "content": None, "tool_calls": calls}, *results])

    assert groups == [["g1"] * 10, *([["g1"]] * 10)]


def test_the_next_batch_is_the_next_group() -> None:
    messages = [user("go"), call("a"), result("a", "x"), assistant("hm"), call("b", text="again"), result("b", "y")]

    assert _groups(messages) == [[None], ["g1"], ["g1"], [None], [None, "g2"], ["g2"]]


def test_consecutive_calls_of_the_responses_format_are_one_batch() -> None:
    def function_call(call_id: str) -> JsonObject:
        return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}

    def output(call_id: str) -> JsonObject:
        return {"type": "function_call_output", "call_id": call_id, "output": "x"}

    messages = [function_call("a"), function_call("b"), output("b"), output("a"), function_call("c"), output("c")]

    assert _groups(messages, "openai-responses") == [["g1"], ["g1"], ["g1"], ["g1"], ["g2"], ["g2"]]


def test_a_result_learns_the_name_of_its_tool_from_the_call() -> None:
    links = pair([get("openai-chat").read(message).sites for message in (call("a", name="read_file"), result("a", "x"))])

    link = links[1][0]
    assert link is not None
    assert link.name == "read_file"


def test_an_image_alone_answers_an_anthropic_call() -> None:
    image: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    messages: list[JsonObject] = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "shot", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [image]}]},
    ]

    assert _groups(messages, "anthropic") == [["g1"], ["g1"]]
