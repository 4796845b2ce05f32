"""The demo's transcript: a real session to read, safe to keep in git, and checkable."""

from __future__ import annotations

import copy
import json
import re
from importlib import resources
from typing import Any

import pytest

from coatcheck.cli.demo import story
from coatcheck_client.pairing import groups
from coatcheck_client.sizes import text_chars
from coatcheck_client.windows import plan_window

SECRET_SHAPES = re.compile(
    r"gh[pousr]_[A-Za-z0-9]{16}|AKIA[0-9A-Z]{12}|-----BEGIN|xox[bap]-|eyJ[A-Za-z0-9_-]{20}|://[^/\s:@]+:[^/\s:@{]+@"
)


def raw() -> str:
    return resources.files("coatcheck.cli.demo").joinpath(story.TRANSCRIPT).read_text("utf-8")


def texts(messages: Any) -> list[str]:
    return [m["content"] for m in messages if m["content"]]


def test_the_file_holds_nothing_of_a_secrets_shape() -> None:
    assert SECRET_SHAPES.search(raw()) is None
    assert raw().count("{{secret:") == 2


def test_the_story_holds_both_secrets_once_it_is_read() -> None:
    told = story.load()

    assert sum(story.holds_secret(json.dumps(m)) for m in told.messages) == 2
    assert "{{secret:" not in json.dumps(told.messages)


def test_it_is_as_long_as_a_day_and_whole() -> None:
    told = story.load()

    assert len(told.messages) == len(told.times) >= 150
    assert list(told.times) == sorted(told.times)
    assert all(group.flaw is None for group in groups(told.messages))
    assert max(len(m.get("tool_calls", ())) for m in told.messages) >= 3


def test_its_window_is_long_enough_for_the_reduction_that_is_promised() -> None:
    window = plan_window(story.load().messages, keep_last=4)

    assert window is not None
    assert sum(text_chars(m) for m in window.messages) >= 120_000


@pytest.mark.parametrize("question", story.QUESTIONS, ids=lambda q: q.query[:20])
def test_each_exact_line_stands_in_it_once_and_not_in_its_question(question: story.Question) -> None:
    told = texts(story.load().messages)

    assert sum(text.split("\n").count(question.exact_line) for text in told) == 1
    assert sum(text.count(question.exact_line) for text in told) == 1
    assert question.exact_line not in question.query


def test_it_is_spoken_in_three_languages() -> None:
    told = "\n".join(texts(story.load().messages))

    assert re.search(r"[а-я]{5}", told)
    assert re.search(r"[\u4e00-\u9fff]{5}", told)


def redacted(messages: Any) -> Any:
    text = json.dumps(messages, ensure_ascii=False)
    for number, pieces in enumerate(story.SECRETS.values()):
        text = text.replace("".join(pieces), f"[REDACTED:some-kind:{number:016x}]")
    return json.loads(text)


def test_a_window_with_placeholders_in_the_secrets_places_is_equal() -> None:
    messages = list(story.load().messages)

    assert story.equals_redacted(messages, redacted(messages))


@pytest.mark.parametrize("change", ["a word", "a secret left", "a placeholder more", "a message less", "an order of keys"])
def test_any_other_difference_is_seen(change: str) -> None:
    messages = list(story.load().messages)
    rebuilt = copy.deepcopy(messages) if change == "a secret left" else redacted(messages)
    if change == "a word":
        rebuilt[3]["content"] = rebuilt[3]["content"].replace("Running", "Runing", 1)
    if change == "a placeholder more":
        rebuilt[3]["content"] = rebuilt[3]["content"].replace("Running", "[REDACTED:x:0000000000000000]", 1)
    if change == "a message less":
        rebuilt.pop()
    if change == "an order of keys":
        rebuilt[1] = dict(reversed(rebuilt[1].items()))

    assert not story.equals_redacted(messages, rebuilt)
