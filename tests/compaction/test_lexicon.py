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
