"""A text longer than the model reads is cut on the borders of sentences, and no token of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.models.token_classifier import chunks


@given(st.lists(st.integers(0, 2), max_size=300), st.integers(1, 60))
def test_every_token_is_in_one_chunk_that_fits(breaks: list[int], room: int) -> None:
    found = list(chunks(breaks, room))

    assert [place for start, end in found for place in range(start, end)] == list(range(len(breaks)))
    assert all(0 < end - start <= room for start, end in found)


@pytest.mark.parametrize(
    ("breaks", "expected"),
    [
        ([2, 0, 1, 2, 1, 1, 1], [(0, 3), (3, 7)]),
        ([2, 0, 1, 0, 1, 0, 0], [(0, 4), (4, 7)]),
        ([0] * 7, [(0, 5), (5, 7)]),
        ([2, 1, 2, 1, 2, 1, 1], [(0, 4), (4, 7)]),
        ([], []),
    ],
)
def test_it_is_cut_at_the_last_sentence_in_reach_else_between_words(breaks: list[int], expected: list[tuple[int, int]]) -> None:
    assert list(chunks(breaks, 5)) == expected
