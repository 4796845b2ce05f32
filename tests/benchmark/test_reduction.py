"""The benchmark of reductions: which texts it takes of a transcript, and what it counts."""

from __future__ import annotations

import json
from pathlib import Path

from benchmark.reduction import any_word, measure, texts_of
from coatcheck.compaction.expendable import words
from tests.compaction.making import Replies, assistant, user


def test_texts_are_those_of_people_that_no_rule_protects(tmp_path: Path) -> None:
    spoken = ["The garden is quiet now.", "Look at /etc/hosts first.", "It is there."]
    messages = [user(spoken[0]), assistant(spoken[1]), user(spoken[2]), user(spoken[0])]
    (tmp_path / "log.json").write_text(json.dumps({"messages": messages}))

    assert texts_of([tmp_path / "log.json"]) == [spoken[0], spoken[2]]


def test_only_what_is_shorter_and_keeps_its_facts_counts_as_accepted() -> None:
    found = measure(Replies("The garden quiet."), ["The garden is quiet.", "The garden is not quiet.", "Quiet."], 0.6)

    assert (found.texts, found.proposed, found.accepted, found.saved_chars) == (3, 2, 1, 3)
    assert found.refusals == {"missing:negation": 1}


def test_any_word_may_go_where_the_guard_is_not_asked() -> None:
    text = "The garden is not quiet."

    assert all(word.may_go for word in any_word(text))
    assert not all(word.may_go for word in words(text))
