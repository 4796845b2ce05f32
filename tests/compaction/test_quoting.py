"""What is quoted is one harmless line."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.compaction.quoting import END_MARKER, MARKER, around, one_line, shorten, stretch

_NASTY_PIECES = [
    *("[", "CONTEXT", "END", " ", "HANDOFF", "]", "\u200b", "\u202e", "\n", "\ud83d", "\U000e0041", "\0", "［"),
    *(MARKER, END_MARKER),
]
_NASTY = st.lists(st.one_of(st.text(max_size=8), st.sampled_from(_NASTY_PIECES)), max_size=20).map("".join)


@given(_NASTY)
def test_a_line_is_valid_and_visible_and_forges_nothing(text: str) -> None:
    line = one_line(text)

    line.encode("utf-8")
    assert "\n" not in line
    assert not any(unicodedata.category(char) == "Cc" for char in line)
    assert not re.search("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]", line)
    assert not re.search(r"[\[［]\s*(?:context|end)\s*handoff", line, re.IGNORECASE)


@given(_NASTY)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert one_line(one_line(text)) == one_line(text)


@given(_NASTY, st.integers(0, 60))
def test_a_shortened_line_fits(text: str, max_chars: int) -> None:
    line = one_line(text)

    assert len(shorten(line, max_chars)) <= max_chars


@given(st.text(max_size=200), st.integers(0, 200), st.integers(2, 90))
def test_a_line_around_a_place_fits(text: str, start: int, max_chars: int) -> None:
    line = one_line(text)
    start = min(start, len(line))

    assert len(around(line, start, min(start + 5, len(line)), max_chars)) <= max_chars


def test_a_delimiter_hidden_behind_invisible_characters_is_escaped() -> None:
    assert one_line("[E\u200bND\n HAND\u2060OFF]") == "(END HANDOFF]"


def test_what_was_found_stays_in_sight() -> None:
    line = "left " * 60 + "needle " + "right " * 60
    start = line.index("needle")

    shown = around(line, start, start + 6, 80)

    assert "needle" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_sentence_is_shown_from_its_beginning() -> None:
    line = "Something else came first, and it was long. It must never be deployed on a Friday. Then more words followed."
    start = line.index("never")

    assert around(line, start, start + 5, 60) == "…It must never be deployed on a Friday. Then more words…"


@pytest.mark.parametrize(
    ("line", "max_chars", "shown"),
    [
        ("Bash mix test test/controllers/session_hook_controller_test.exs", 46, "Bash mix test test/controllers/…"),
        ("see https://example.org/a/page?name=something", 40, "see https://example.org/a/page?name=…"),
        ("x" * 60, 20, "x" * 19 + "…"),
        ("two words that end", 18, "two words that end"),
    ],
)
def test_a_long_word_is_cut_between_its_parts_where_it_has_any(line: str, max_chars: int, shown: str) -> None:
    assert shorten(line, max_chars) == shown


def test_a_stretch_says_on_which_side_its_line_goes_on() -> None:
    text = "first line\n  the second one is longer\nlast"
    second = text.index("the")

    assert stretch(text, 0, 10) == "first line"
    assert stretch(text, 11, 37) == stretch(text, second, 37) == "the second one is longer"
    assert stretch(text, second + 4, 37) == "…second one is longer"
    assert stretch(text, second, second + 10) == "the second…"
    assert stretch(text, second + 4, second + 10) == "…second…"


def test_a_placeholder_is_not_cut() -> None:
    line = "x" * 50 + " [REDACTED:github-token:0123456789abcdef] y"

    assert shorten(line, 70) == "x" * 50 + "…"


def test_stacked_marks_are_thinned() -> None:
    assert len(one_line("a" + "\u0301" * 500)) == 4


@pytest.mark.parametrize("text", ["plain words", "日本語のテキスト", "Привет, мир", "naïve café"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert one_line(text) == text
