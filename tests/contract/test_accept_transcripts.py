"""Transcripts of other people's agents through the commands: kept, handed off and rebuilt, whole and exact.

COATCHECK_TEST_CASES names a folder from outside this repository with a folder ``transcripts`` in it.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coatcheck.domain.canonical import to_bytes
from coatcheck_client.transcripts import Transcript, read_transcript
from coatcheck_client.windows import Cut, cut_windows
from tests.cli.serving import Machine

pytestmark = pytest.mark.accept

CASES = os.environ.get("COATCHECK_TEST_CASES")
FILES = sorted(path for path in (Path(CASES) / "transcripts").iterdir() if path.is_file()) if CASES else []
WINDOW_CHARS = 100_000
PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9-]+:[0-9a-f]{16}\]")
THINKING_MARKER = "[REDACTED: this thinking held a secret]"


@dataclass(frozen=True)
class Kept:
    """A transcript as the commands left it: what was cut, what was answered, and each window rebuilt."""

    transcript: Transcript
    cut: Cut
    answers: list[dict[str, Any]]
    windows: list[dict[str, Any]]
    said: str


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="cc-", dir="/tmp") as folder:  # short, for the database's socket
        yield Machine(Path(folder) / "data")


@pytest.fixture(scope="module")
def kept(machine: Machine) -> dict[str, Kept]:
    """Every file, one after the other, in one data directory."""
    if not FILES:
        pytest.skip("COATCHECK_TEST_CASES names no folder with transcripts")
    found = {}
    for path in FILES:
        done = machine.here("compact", str(path), "--json", "--window-chars", str(WINDOW_CHARS))
        assert done.code == 0, (path.name, done.err)
        windows = [machine.ok("window", answer["manifest_id"]) for answer in done.json]
        transcript = read_transcript(path)
        found[path.name] = Kept(transcript, cut_windows(transcript.messages, WINDOW_CHARS), done.json, windows, done.err)
    return found


def test_there_are_cases() -> None:
    if not CASES:
        pytest.skip("COATCHECK_TEST_CASES is not set")
    assert FILES


@pytest.mark.parametrize("name", [path.name for path in FILES])
def test_nothing_valid_is_refused(kept: dict[str, Kept], name: str) -> None:
    case = kept[name]

    assert len(case.answers) == len(case.cut.windows) > 0, case.said
    assert sum(len(window.messages) for window in case.cut.windows) + sum(
        len(left.indices) for left in case.cut.left_out
    ) == len(case.transcript.messages)  # fmt: skip
    assert case.cut.left_out == ()


@pytest.mark.parametrize("name", [path.name for path in FILES if path.suffix == ".json"])
def test_a_file_of_messages_is_read_as_it_stands(name: str) -> None:
    path = next(path for path in FILES if path.name == name)
    raw = json.loads(path.read_text("utf-8"))
    messages = raw if isinstance(raw, list) else raw.get("history") or raw["messages"]

    assert to_bytes(list(read_transcript(path).messages)) == to_bytes(messages)


@pytest.mark.parametrize("name", [path.name for path in FILES])
def test_each_window_comes_back_as_it_was_or_in_its_redacted_form(kept: dict[str, Kept], name: str) -> None:
    case = kept[name]

    for number, (window, answer, back) in enumerate(zip(case.cut.windows, case.answers, case.windows, strict=True)):
        messages = list(window.messages)
        assert back["format"] == case.transcript.format
        system = case.transcript.system if number == 0 else None
        if answer["redactions"]["total"] == 0:
            assert to_bytes(back["messages"]) == to_bytes(messages)
            assert to_bytes(back["system"]) == to_bytes(system)
        else:
            assert is_redacted_form(back["messages"], messages)
            assert is_redacted_form(back["system"], system)
            placeholders = len(PLACEHOLDER.findall(json.dumps(back))) + json.dumps(back).count(THINKING_MARKER)
            assert placeholders > 0


@pytest.mark.parametrize("name", [path.name for path in FILES])
def test_no_window_holds_a_call_without_its_result(kept: dict[str, Kept], name: str) -> None:
    for back in kept[name].windows:
        asked, answered = calls_and_results(back["messages"])
        assert asked == answered


@pytest.mark.parametrize("name", [path.name for path in FILES])
def test_every_handoff_is_short_and_shorter_than_its_window(kept: dict[str, Kept], name: str) -> None:
    for answer in kept[name].answers:
        text = answer["handoff"]["text"]
        assert len(text) == answer["handoff"]["chars"] <= 1_900
        assert len(text) < answer["window"]["chars"]
        text.encode("utf-8")


def test_after_all_of_that_a_scan_finds_nothing(kept: dict[str, Kept], machine: Machine) -> None:
    done = machine.here("scan", "--index", "--json")

    assert done.code == 0, done.out
    assert done.json["findings_total"] == 0


def is_redacted_form(back: Any, original: Any) -> bool:
    """Whether what came back is the original but for placeholders: decided without the redactor."""
    if isinstance(back, str) and isinstance(original, str):
        if back in (original, THINKING_MARKER):
            return True
        between = [re.escape(text) for text in PLACEHOLDER.split(back)]
        return len(between) > 1 and re.fullmatch(".+?".join(between), original, re.DOTALL) is not None
    if isinstance(back, dict) and isinstance(original, dict):
        if str(original.get("type")).startswith(("thinking", "reasoning")) and THINKING_MARKER in json.dumps(back):
            return True
        return len(back) == len(original) and all(
            is_redacted_form(key, other) and is_redacted_form(item, original[other])
            for (key, item), other in zip(back.items(), original, strict=True)
        )
    if isinstance(back, list) and isinstance(original, list):
        return len(back) == len(original) and all(map(is_redacted_form, back, original))
    return type(back) is type(original) and bool(back == original)


def calls_and_results(messages: list[dict[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    """The ids of calls and of results in a window, of any of the three formats."""
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for message in messages:
        kind = str(message.get("type", ""))
        if kind.endswith("_call"):
            asked[message["call_id"]] += 1
        if kind.endswith("_call_output"):
            answered[message["call_id"]] += 1
        asked.update(call["id"] for call in message.get("tool_calls") or ())
        if message.get("role") == "tool":
            answered.update(message.get("tool_call_ids") or [message["tool_call_id"]])
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block.get("type") == "tool_use":
                asked[block["id"]] += 1
            elif block.get("type") == "tool_result":
                answered[block["tool_use_id"]] += 1
    return asked, answered
