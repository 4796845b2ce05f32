"""Phrases are found where they stand as words, in three languages, always in the same order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.compaction.lexicon import Signal, hits, lower


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("We decided on it", Signal.DECISION),
        ("you must not do it", Signal.PROHIBITION),
        ("don’t do it", Signal.PROHIBITION),
        ("a ValueError came", Signal.ERROR),
        ("scratch that", Signal.CORRECTION),
        ("there is a todo", Signal.OPEN),
        ("Мы договорились", Signal.DECISION),
        ("это запрещено", Signal.PROHIBITION),
        ("на самом деле нет", Signal.CORRECTION),
        ("произошла ошибка", Signal.ERROR),
        ("осталось два", Signal.OPEN),
        ("改为蓝色", Signal.CORRECTION),
        ("严禁访问", Signal.PROHIBITION),
        ("尚未完成", Signal.OPEN),
    ],
)
def test_a_phrase_is_found(text: str, signal: Signal) -> None:
    assert signal in {hit.signal for hit in hits(lower(text))}


@pytest.mark.parametrize("text", ["the undecided voter", "nevertheless", "mustard", "a proactually made word"])
def test_a_part_of_a_word_is_no_phrase(text: str) -> None:
    assert not list(hits(lower(text)))


def test_a_hit_says_where_it_stands() -> None:
    text = "first line\nWe decided so"

    (hit,) = hits(lower(text))

    assert text[hit.start : hit.end] == "decided"


@given(st.text())
def test_lower_case_keeps_the_length(text: str) -> None:
    assert len(lower(text)) == len(text)


def places(text: str, limit: int = 64) -> list[str]:
    return [f"{hit.start} {text[hit.start : hit.end]}" for hit in hits(lower(text), limit=limit)]


def test_a_first_word_that_only_ever_stands_inside_of_others_begins_no_phrase() -> None:
    assert places("a must-have") == []
    assert places("a must-have that you must have") == ["2 must", "21 must"]


def test_so_many_places_of_a_phrase_are_told_and_no_more() -> None:
    text = "an error, a failed test, an error, an error"

    assert places(text) == ["3 error", "28 error", "38 error", "12 failed"]
    assert places(text, limit=1) == ["3 error", "12 failed"]


def test_a_place_inside_of_a_longer_word_does_not_count_for_the_limit() -> None:
    assert places("undecided undecided decided", limit=1) == ["20 decided"]


def test_places_are_counted_in_code_points_beside_other_scripts_and_lone_surrogates() -> None:
    assert places("ёж \ud800 🦔 must, 禁止") == ["7 must", "13 禁止"]


def test_phrases_that_overlap_are_all_found() -> None:
    assert places("blocked by a policy: forbidden by rule") == ["0 blocked by", "21 forbidden", "21 forbidden by", "13 policy"]
