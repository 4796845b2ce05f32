"""Local answers about grapheme boundaries agree with reading the whole text."""

from __future__ import annotations

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.compaction.graphemes import Boundaries

_TEXTS = st.lists(
    st.one_of(
        st.text(max_size=6),
        st.sampled_from(
            ["a", " ", "\r\n", "\n", "\u0301", "👨‍👩‍👧", "\u200d", "🇩", "🇪", "가", "ᄀ", "ᅡ", "क्", "षि", "\u0600", "漢", "👍🏽"]
        ),
    ),
    max_size=30,
).map("".join)


@settings(max_examples=500)
@given(_TEXTS)
def test_every_place_is_judged_as_by_reading_the_whole_text(text: str) -> None:
    expected = {0}
    for cluster in regex.findall(r"\X", text):
        expected.add(max(expected) + len(cluster))

    boundaries = Boundaries(text, 0, len(text))

    assert {place for place in range(len(text) + 1) if boundaries.at(place)} == expected


def test_the_neighbouring_boundaries_are_found() -> None:
    text = "a👨‍👩‍👧b"
    boundaries = Boundaries(text, 0, len(text))

    assert boundaries.last_up_to(3) == 1
    assert boundaries.first_after(3) == 6
    assert boundaries.last_up_to(0) is None
