"""The laws of segmentation, and where it prefers to cut."""

from __future__ import annotations

import time

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.compaction.segmentation import split
from coatcheck.domain.placeholders import PLACEHOLDER

_PLACEHOLDER = "[REDACTED:github-token:0123456789abcdef]"
_CHUNKS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "\n",
            "\n\n",
            " ",
            "word ",
            "e\u0301",
            "👨‍👩‍👧‍👦",
            "🇩🇪",
            "क्षि",
            "가",
            "漢字。",
            "\r\n",
            "\ud83d",
            "```\n",
            "# head\n",
            _PLACEHOLDER,
            "Dr. X. ",
        ]
    ),
)
_TEXTS = st.lists(_CHUNKS, max_size=40).map("".join)


@settings(max_examples=400)
@given(text=_TEXTS, max_chars=st.integers(40, 90))
def test_segments_joined_are_the_text_and_none_is_too_long(text: str, max_chars: int) -> None:
    segments = split(text, max_chars)

    assert "".join(segments) == text
    assert all(0 < len(segment) <= max_chars for segment in segments)


@settings(max_examples=400)
@given(text=_TEXTS, max_chars=st.integers(60, 90))
def test_no_cut_splits_a_placeholder_or_a_grapheme(text: str, max_chars: int) -> None:
    # A grapheme longer than a segment has to be cut; here there are none but by chance, and those texts are left out.
    graphemes = regex.findall(r"\X", text)
    if any(len(grapheme) > 8 for grapheme in graphemes):
        return
    boundaries = {0}
    for grapheme in graphemes:
        boundaries.add(max(boundaries) + len(grapheme))
    inside = {place for match in PLACEHOLDER.finditer(text) for place in range(match.start() + 1, match.end())}

    cuts = _cuts(split(text, max_chars))

    assert cuts <= boundaries
    assert not cuts & inside


@given(st.integers(3_801, 20_000))
def test_no_tiny_tail_is_left(chars: int) -> None:
    segments = split("a" * chars)

    assert min(map(len, segments)) > 1_000


def test_a_grapheme_longer_than_a_segment_is_cut_at_the_limit() -> None:
    text = "a" + "\u0301" * 10_000

    segments = split(text)

    assert "".join(segments) == text
    assert max(map(len, segments)) <= 3_800


def test_a_block_boundary_wins_over_paragraph_line_sentence_and_word() -> None:
    before = "word. " * 350 + "\nline\n\n"
    heading = "# Heading\n"
    after = "more words. " * 200 + "\n\n" + "tail " * 80

    segments = split(before + heading + after)

    assert segments[1].startswith(heading)


@pytest.mark.parametrize(
    ("boundary", "filler"), [("\n\n", "line\n"), ("\n", "Sentence. "), (". ", "word "), (" ", "x"), ("。", "漢")], ids=repr
)
def test_the_best_boundary_at_hand_is_taken(boundary: str, filler: str) -> None:
    stretch = filler * (2_000 // len(filler)) + "z"
    text = stretch + boundary + stretch

    segments = split(text, 2_300)

    assert segments == [stretch + boundary, stretch]


def test_code_between_fences_is_not_cut_where_a_fence_is_at_hand() -> None:
    code = "```python\n" + "x = 1\n" * 300 + "```\n"
    text = "Some words. " * 170 + "\n" + code + "Some words. " * 100

    segments = split(text)

    assert all(segment.count("```") % 2 == 0 for segment in segments)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "word ",
        "漢字",
        "가나다 ",
        "e\u0301",
        "👨‍👩‍👧",
        "🇩🇪",
        "\n",
        "\r\n",
        "```\n",
        _PLACEHOLDER,
        "\u0301",
        "क्षि ",
        "\ud83d",
        "\u200d",
    ],
    ids=ascii,
)
def test_five_megabytes_take_about_a_second_whatever_they_are(unit: str) -> None:
    text = unit * (5_000_000 // len(unit))
    started = time.thread_time()

    segments = split(text)

    assert time.thread_time() - started < 6
    assert "".join(segments) == text


def test_an_empty_text_has_no_segment() -> None:
    assert split("") == []


def _cuts(segments: list[str]) -> set[int]:
    cuts = set()
    position = 0
    for segment in segments[:-1]:
        position += len(segment)
        cuts.add(position)
    return cuts
