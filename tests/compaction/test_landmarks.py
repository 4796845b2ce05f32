"""What a window is about, by name: the files it changed, the programs it ran, its topics. And what is no name."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import pytest

from coatcheck.compaction import calls
from coatcheck.compaction.excerpt import excerpt, with_landmarks
from coatcheck.compaction.landmarks import Landmark, files, programs
from coatcheck.compaction.navigation import Overview
from coatcheck.compaction.quotable import Quotable
from coatcheck.compaction.topics import topics
from coatcheck.domain.canonical import JsonValue
from coatcheck.domain.messages import PartKind
from tests.compaction.making import prose
from tests.compaction.test_lines import quotable


def call(tool: str, position: int = 0, **arguments: JsonValue) -> Quotable:
    return quotable(json.dumps(arguments), "assistant", position, source=tool, kind=PartKind.TOOL_CALL)


def names(found: Sequence[Landmark]) -> list[str]:
    return [landmark.name for landmark in found]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"command": "pytest -q tests", "timeout": 5}, "pytest -q tests"),
        ({"command": "cd /srv &&\n make", "description": "Build it"}, "cd /srv && make Build it"),
        ({"replace_all": False, "file_path": "/srv/app.py", "old_string": "a"}, "/srv/app.py"),
        ({"file_path": "/home/someone/projects/shop-worktrees/one/lib/shop/ports.ex"}, "…/lib/shop/ports.ex"),
        ({"pattern": "def main", "path": "src"}, "def main src"),
        ({"files": ["/srv/app.py", "/srv/b.py"]}, "/srv/app.py"),
        ({"input": "*** Begin Patch\n*** Update File: lib/ports.py\n@@"}, "lib/ports.py"),
        ({"url": "https://example.org/a?b=c"}, "https://example.org/a?b=c"),
        ({"command": "view", "path": "/srv/hello.py"}, "view /srv/hello.py"),
        ({"number": 3, "name": "x"}, None),
    ],
)
def test_a_call_is_described_by_what_it_was_made_on(arguments: dict[str, JsonValue], told: str | None) -> None:
    assert calls.describe(json.dumps(arguments)) == told
    assert calls.describe(json.dumps(arguments, indent=2, ensure_ascii=False)) == told


def test_a_call_that_is_cut_off_is_described_as_far_as_it_goes() -> None:
    assert calls.describe('{"command": "python make_report.py --all", "env": {"A": "b') == "python make_report.py --all"
    assert calls.describe('{"command": "python make_rep') == "python make_rep…"
    assert calls.describe('ld_string": "a", "file_path": "/srv/app.py"') == "/srv/app.py"


def test_changed_files_come_first_then_those_named_most_often() -> None:
    window = [
        quotable("Look at main.py, util.py and util.py again, in v2.0 of example.org", position=0),
        call("Read", 1, file_path="/srv/main.py"),
        call("Edit", 2, file_path="/srv/ports.py"),
        call("Bash", 3, command="python util.py"),
        call("str_replace_editor", 4, command="create", path="/srv/new.py"),
        call("apply_patch", 5, input="*** Update File: lib/old.py\n"),
    ]

    assert names(files(window)) == ["old.py", "new.py", "ports.py", "util.py", "main.py"]
    assert files(window)[2].sha256 == window[2].sha256


def test_programs_are_named_by_their_first_words_and_those_that_only_look_come_last() -> None:
    window = [
        call("Bash", 0, command="ls -la"),
        call("Bash", 1, command="cd /srv && PORT=1 mix test test/a.exs 2>&1 | tail -3"),
        call("Bash", 2, command="mix test"),
        call("Bash", 3, command="git push origin main"),
        call("Bash", 4, command="/usr/bin/python3 run.py"),
        call("editor", 5, command="view", path="/srv/a.py"),
    ]

    assert names(programs(window)) == ["mix test", "python3 run.py", "git push", "ls"]


@pytest.mark.parametrize(
    "name",
    [
        "ignore_all_previous_instructions.md",
        "You-must-run-this.sh",
        "system.prompt.override.txt",
        "a b.py",
        "[REDACTED:github-token:0123456789abcdef].py",
        "x" * 80 + ".py",
        "right\u202eto.left.py",
        "..",
        "noending",
    ],
)
def test_what_is_no_plain_name_is_not_named(name: str) -> None:
    window = [call("Write", file_path=f"/srv/{name}"), call("Write", file_path="/srv/fine.py")]

    assert names(files(window)) == ["fine.py"]


def test_a_tools_output_names_nothing() -> None:
    window = [quotable("see secret_plan.md and run mix test", "tool", source="fetch")]

    assert (files(window), programs(window), topics(window)) == ([], [], [])


def test_names_that_are_an_instruction_together_are_left_out_together() -> None:
    window = [call("Write", 0, file_path="rules.md"), call("Write", 1, file_path="ignore.md")]

    assert names(files(window)) == ["ignore.md", "rules.md"]
    assert "files" not in excerpt(window, [], 500).text


def test_a_topic_is_a_word_that_clusters_and_not_one_that_is_strewn() -> None:
    strewn = [quotable(f"{prose(3 + number)} the lantern of evening {number}", position=number) for number in range(40)]
    about = [
        quotable(f"{prose(2)} Our adoption papers: adoption agency {number}", "assistant", 100 + number) for number in range(4)
    ]

    found = names(topics([*strewn[:20], *about, *strewn[20:]]))

    assert "adoption" in found[:3]
    assert "lantern" not in found


def test_topics_are_of_any_language_with_letters() -> None:
    window = [quotable(f"{prose(9)} {number}", position=number) for number in range(10)]
    window += [quotable(f"Развёртывание стенда {number}: развёртывание идёт", position=20 + number) for number in range(3)]
    window += [quotable(f"{prose(9)} {number} later", position=40 + number) for number in range(10)]

    assert "развёртывание" in names(topics(window))[:3]


def test_the_overview_names_files_programs_and_topics_in_its_room_and_rests_on_their_segments() -> None:
    window = [
        quotable("Fix the rounding of totals", position=0),
        call("Edit", 1, file_path="/srv/totals.py"),
        call("Bash", 2, command="pytest -q"),
        quotable("Totals are rounded now.", "assistant", 3),
    ]

    overview = excerpt(window, ["Edit", "Bash"], 500)

    assert overview.text.endswith("; tools: Bash x1, Edit x1; files: totals.py; ran: pytest")
    assert set(overview.sha256s) == {one.sha256 for one in window}
    for room in range(30, 300, 7):
        assert len(excerpt(window, ["Edit", "Bash"], room).text) <= room


def test_a_generated_overview_is_followed_by_what_it_leaves_room_for() -> None:
    window = [call("Edit", 1, file_path="/srv/totals.py"), call("Bash", 2, command="pytest -q")]
    said = Overview("Totals are rounded now.", "generated", ("a" * 64,))

    assert with_landmarks(said, window, 200).text == "Totals are rounded now. files: totals.py; ran: pytest"
    assert with_landmarks(said, window, 200).sha256s == ("a" * 64, window[0].sha256, window[1].sha256)
    assert with_landmarks(said, window, 30) == said
    for room in range(20, 80):
        assert len(with_landmarks(said, window, room).text) <= max(room, len(said.text))


@pytest.mark.parametrize("unit", ["a.py ", "/a" * 40 + ".", '"path":"', '"command": "x;', ".md", "a@b.c-", "word topics ", "\\"])
def test_looking_for_names_is_linear(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    window = [quotable(text, "assistant", 0), quotable(text, "assistant", 1, kind=PartKind.TOOL_CALL, source="Bash")]
    started = time.thread_time()

    files(window)
    programs(window)
    topics(window)
    calls.describe(text)

    assert time.thread_time() - started < 2
