"""Whatever a model would leave out of what may go, the fact guard lets it: the text keeps its facts, its code points, its shape."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.compaction.abridging import abridged
from coatcheck.compaction.expendable import words
from coatcheck.compaction.fact_guard import compare
from coatcheck.compaction.fact_tokens import tokens
from coatcheck.compaction.fact_words import COMMON, CONDITIONS, HEDGES, MODALS, NEGATIONS, QUANTITIES
from tests.compaction.prose import CHINESE, RUSSIAN, english

_REAL = [*english(), *RUSSIAN, *CHINESE]
_WORDS = [
    *sorted(COMMON), *sorted(HEDGES | NEGATIONS | MODALS | CONDITIONS | QUANTITIES)[::7], "server", "grows", "garden", "сервер",
    "растёт", "работает", "port", "8443", "5", "ms", "-", "—", "(the", "old", "one)", "**very", "warm**", "`main`", "'blue'",
    "have", "to", "agreed", "Alice", "/etc/hosts", "v1.2.3", "服务器", "已经", "的", "了解", "目的", "不", "也许", "没有",
    "三台", "吗",
    "[REDACTED:github-token:0123456789abcdef]", "|", "#", ">",
]  # fmt: skip
_GLUE = st.sampled_from(
    [" ", " ", " ", ", ", ". ", "! ", "? ", "; ", "\n", "\n\n", "\n- ", " (", ") ", "，", "。", " — ", "  ", '" ']
)


@st.composite
def _texts(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.tuples(st.sampled_from(_WORDS), _GLUE), min_size=1, max_size=25))
    return "".join(word + glue for word, glue in parts)


def _cut(text: str, data: st.DataObject) -> str:
    found = words(text)
    return abridged(text, found, [word.may_go and data.draw(st.booleans()) for word in found])


def _without_small_words(text: str) -> str:
    found = words(text)
    small = (text[word.start : word.end].lower() in COMMON or text[word.start] > "\u3000" for word in found)
    return abridged(text, found, [word.may_go and is_small for word, is_small in zip(found, small, strict=True)])


@settings(max_examples=400, deadline=None)
@given(text=st.sampled_from(_REAL), data=st.data())
def test_the_guard_accepts_whatever_goes_of_what_may_go(text: str, data: st.DataObject) -> None:
    assert compare(text, _cut(text, data)).faults == ()


@settings(max_examples=600, deadline=None)
@given(text=_texts(), data=st.data())
def test_what_is_left_are_the_texts_own_words_and_code_points_in_their_order(text: str, data: st.DataObject) -> None:
    shorter = _cut(text, data)

    characters, said = iter(text), iter(token.text for token in tokens(text))
    assert all(character in characters for character in shorter)
    assert all(token.text in said for token in tokens(shorter))
    assert len(shorter) <= len(text)


@settings(max_examples=300, deadline=None)
@given(text=_texts(), data=st.data())
def test_words_that_are_held_stay(text: str, data: st.DataObject) -> None:
    shorter = _cut(text, data)

    position = 0
    for held in (text[word.start : word.end] for word in words(text) if not word.may_go):
        position = shorter.index(held, position) + len(held)


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("The queue is growing here. It does not answer.", "queue growing. not answer."),
        ("The cache is warm (see above), and it works, now. Thanks!", "cache warm (see above), works."),
        ("It was (and so is) down, so we wait.", "down, wait."),
        ("The **very old** server answers the **really** calls.", "**old** server answers calls."),
        ("We see, well, then, that it grows.", "see, grows."),
        ("Is it now done?", "done?"),
        ("And is this it?", "And is this it?"),
        ("- the first\n- and then\n\nThe second", "- first\n\nsecond"),
        ("one\n\n    two is there\n", "one\n\n    two"),
        ("A is   wide.", "wide."),
        ("foo的bar", "foo的bar"),
        ("foo, 然后 bar", "foo, bar"),
        ("谢谢大家，这非常好。\n网关已经恢复了。", "这好。\n网关恢复。"),
        ("好的，我已经了解了目的。更好的方案也许就绪了。", "我了解目的。更好方案也许就绪。"),
        ("她的目的就是突然后退，我也非常认真的看了。", "她目的是突然后退，我认真看。"),
        ("We have agreed to go there.", "have agreed go."),
        ("Der Server ist jetzt nicht mehr ganz bereit.", "Der Server ist jetzt nicht mehr ganz bereit."),
        ("| the | a |\n|---|---|\n| is | it |", "| the | a |\n|---|---|\n| is | it |"),
        ('He said "it is the old one" there.', 'said "it is the old one".'),
        ('well" it is so" now', 'well" it is so"'),
        ("The wall is there", "wall"),
        ("the a is", "the a is"),
        ("", ""),
    ],
)
def test_punctuation_and_white_space_fit_what_is_left(text: str, shorter: str) -> None:
    assert _without_small_words(text) == shorter


@pytest.mark.parametrize(
    "held", ["не", "maybe", "8443", "ms", "load_config", "/etc/hosts", "Alice", "никогда", "возможно", "must", "5", "kafka-1"]
)
def test_what_the_guard_asks_for_may_not_go(held: str) -> None:
    text = f"well then {held} there"

    assert [text[word.start : word.end] for word in words(text) if not word.may_go] == [held]


@pytest.mark.parametrize(
    "unit", ["the ", "a(", "a)", "(", ") ", "**", "** a", "- ", "-\n", "的", "了，", "a. ", " ", "\n", "'", "a的", "—"]
)
def test_it_is_linear(unit: str) -> None:
    text = unit * (60_000 // len(unit)) + " the end"
    started = time.thread_time()

    _without_small_words(text)

    assert time.thread_time() - started < 10
