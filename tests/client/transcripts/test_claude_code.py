"""Claude Code logs: a graph of lines becomes the conversation on its main chain, nothing of it lost or moved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coatcheck_client.errors import TranscriptError
from coatcheck_client.transcripts import Transcript, parse_transcript
from coatcheck_client.windows import cut_windows


class Log:
    """Writes lines as Claude Code does; each follows the one before it unless told otherwise."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self._seconds = 0

    def add(self, kind: str, uuid: str, parent: str | None = "", **more: Any) -> str:
        before = next((line["uuid"] for line in reversed(self.lines) if "uuid" in line), None)
        self._seconds += 1
        self.lines.append(
            {
                "parentUuid": before if parent == "" else parent,
                "isSidechain": False,
                "type": kind,
                "uuid": uuid,
                "timestamp": f"2026-02-12T15:36:{self._seconds:02d}.500Z",
                **more,
            }
        )
        return uuid

    def user(self, uuid: str, content: Any, parent: str | None = "", **more: Any) -> str:
        return self.add("user", uuid, parent, message={"role": "user", "content": content}, **more)

    def assistant(self, uuid: str, id: str, block: dict[str, Any], parent: str | None = "", **more: Any) -> str:
        message = {"id": id, "role": "assistant", "model": "m", "content": [block], "usage": {"input_tokens": 3}}
        return self.add("assistant", uuid, parent, message=message, **more)

    def read(self) -> Transcript:
        return parse_transcript("\n".join(json.dumps(line) for line in self.lines).encode())


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}


def result(id: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": f"of {id}"}]


THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmF0dXJl"}


def test_the_blocks_of_one_message_are_joined_in_order_and_untouched() -> None:
    log = Log()
    log.user("u1", "list the files")
    log.assistant("a1", "m1", THINKING)
    log.assistant("a2", "m1", text("I will look."))
    log.assistant("a3", "m1", use("t1"))
    log.user("u2", result("t1"))

    read = log.read()

    assert (read.format, read.system, read.source) == ("anthropic", None, "claude-code")
    assert read.messages == (
        {"role": "user", "content": "list the files"},
        {"role": "assistant", "content": [THINKING, text("I will look."), use("t1")]},
        {"role": "user", "content": result("t1")},
    )
    assert [t.second if t else None for t in read.times] == [1, 2, 5]


def test_parallel_calls_and_results_that_hang_beside_the_chain_are_one_exchange() -> None:
    log = Log()
    log.user("u1", "go")
    log.assistant("a1", "m1", use("t1"))
    log.assistant("a2", "m1", use("t2"))
    log.assistant("a3", "m1", use("t3"), parent="a2")
    log.user("r3", result("t3"), parent="a3")
    log.user("r1", result("t1"), parent="a1")
    log.user("r2", result("t2"), parent="a2")
    log.assistant("a4", "m2", text("done"), parent="r2")

    read = log.read()

    assert read.messages == (
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use("t1"), use("t2"), use("t3")]},
        {"role": "user", "content": [*result("t3"), *result("t1"), *result("t2")]},
        {"role": "assistant", "content": [text("done")]},
    )
    assert read.warnings == ()


def test_a_call_streamed_after_the_first_result_still_belongs_to_its_message() -> None:
    log = Log()
    log.user("u1", "go")
    log.assistant("a1", "m1", use("t1"))
    log.user("r1", result("t1"))
    log.assistant("a2", "m1", use("t2"))
    log.user("r2", result("t2"))
    log.user("u2", "thanks")

    assert [m["role"] for m in log.read().messages] == ["user", "assistant", "user", "user"]
    assert log.read().messages[2]["content"] == [*result("t1"), *result("t2")]


def test_words_that_came_between_a_call_and_its_result_follow_the_result() -> None:
    log = Log()
    log.user("u1", "go")
    log.assistant("a1", "m1", use("t1"))
    log.user("u2", "and hurry")
    log.user("r1", result("t1"))

    assert [m["content"] for m in log.read().messages[2:]] == [result("t1"), "and hurry"]


def test_a_compaction_is_crossed_and_its_summary_is_an_ordinary_message() -> None:
    log = Log()
    log.user("u1", "the task")
    log.assistant("a1", "m1", text("half of it is done"))
    log.add("system", "b1", None, subtype="compact_boundary", logicalParentUuid="a1", content="Conversation compacted")
    log.user("s1", "This session is being continued ...", isCompactSummary=True)
    log.assistant("a2", "m2", text("the rest, too"))

    read = log.read()

    assert [m["content"] if isinstance(m["content"], str) else m["content"][0]["text"] for m in read.messages] == [
        "the task",
        "half of it is done",
        "This session is being continued ...",
        "the rest, too",
    ]
    assert read.warnings == ("1 lines of type system were left out",)


def test_a_branch_that_was_rewound_is_left_out_and_counted() -> None:
    log = Log()
    log.user("u1", "the task")
    log.assistant("a1", "m1", text("a first try"))
    log.user("u2", "no, differently")
    log.assistant("a2", "m2", text("a wrong way"))
    log.user("u3", "yes, like this", parent="a1")
    log.assistant("a3", "m3", text("the right way"))

    read = log.read()

    assert [m["content"] for m in read.messages if m["role"] == "user"] == ["the task", "yes, like this"]
    assert read.warnings == ("2 lines of abandoned branches were left out",)


def test_a_rewind_before_a_compaction_keeps_only_the_way_that_was_taken() -> None:
    log = Log()
    log.user("u1", "the task")
    log.assistant("a1", "m1", text("one"))
    log.user("u2", "abandoned")
    log.user("u3", "taken", parent="a1")
    log.assistant("a2", "m2", text("two"))
    log.add("system", "b1", None, subtype="compact_boundary", logicalParentUuid="a2")
    log.user("s1", "summary", isCompactSummary=True)

    assert [m["content"] for m in log.read().messages if m["role"] == "user"] == ["the task", "taken", "summary"]


def test_sidechains_progress_attachments_and_system_lines_are_left_out_and_counted() -> None:
    log = Log()
    log.user("u1", "go")
    log.lines.append({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}})
    log.user("side", "a task for a helper", isSidechain=True)
    log.assistant("side2", "m9", text("helping"), isSidechain=True)
    log.add("progress", "p1", "u1", data={})
    log.add("attachment", "p2", "p1", attachment={})
    log.assistant("a1", "m1", text("done"), parent="p2")

    read = log.read()

    assert len(read.messages) == 2
    assert read.warnings == (
        "1 lines of type attachment were left out",
        "1 lines of type file-history-snapshot were left out",
        "1 lines of type progress were left out",
        "2 lines of sidechains were left out",
    )


def test_a_chain_that_breaks_off_goes_on_with_the_line_written_before() -> None:
    log = Log()
    log.user("u1", "the task")
    log.assistant("a1", "m1", text("one"))
    log.user("u2", "go on", parent="not-in-the-file")

    read = log.read()

    assert len(read.messages) == 3
    assert "not in the file" in read.warnings[0]


def test_a_result_written_twice_is_told_once() -> None:
    log = Log()
    log.user("u1", "go")
    log.assistant("a1", "m1", use("t1"))
    log.user("r1", result("t1"))
    log.user("r1-again", result("t1"), parent="a1")
    log.assistant("a2", "m2", text("done"), parent="r1")

    assert [m["role"] for m in log.read().messages] == ["user", "assistant", "user", "assistant"]


def test_an_interrupted_call_at_the_end_is_in_no_window() -> None:
    log = Log()
    log.user("u1", "go " * 2_000)
    log.assistant("a1", "m1", use("t1"))

    read = log.read()
    cut = cut_windows(read.messages)

    assert len(read.messages) == 2
    assert [window.indices for window in cut.windows] == [(0,)]
    assert cut.left_out[0].indices == (1,)


def test_a_line_that_is_still_being_written_is_left_out() -> None:
    log = Log()
    log.user("u1", "go")
    raw = json.dumps(log.lines[0]).encode() + b'\n{"parentUuid": "u1", "type": "assi'

    read = parse_transcript(raw)

    assert len(read.messages) == 1
    assert read.warnings == ("line 2, the last, is cut off and was left out",)


def test_a_log_without_a_message_is_refused() -> None:
    log = Log()
    log.add("progress", "p1", None, data={})

    with pytest.raises(TranscriptError, match="no message"):
        log.read()


def test_a_circle_of_parents_ends() -> None:
    log = Log()
    log.user("u1", "one", parent="u2")
    log.user("u2", "two", parent="u1")

    assert len(log.read().messages) == 2
