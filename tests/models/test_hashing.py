"""The embedder without weights."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.models.hashing import DIMENSIONS, HashingEmbedder

EMBEDDER = HashingEmbedder()


def likeness(left: str, right: str) -> float:
    return sum(a * b for a, b in zip(EMBEDDER.embed_query(left), EMBEDDER.embed_query(right), strict=True))


@given(st.text())
def test_any_text_has_a_vector_of_length_one(text: str) -> None:
    vector = EMBEDDER.embed_query(text)

    assert len(vector) == DIMENSIONS
    assert math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-9)


def test_like_texts_are_near_and_unlike_ones_are_not() -> None:
    said = "The database of the staging cluster runs in Frankfurt"

    assert likeness(said, said) > 0.999
    assert likeness(said, "the staging database ran in Frankfurt") > 0.5
    assert abs(likeness(said, "Lunch was good, thanks")) < 0.3


def test_a_vector_is_the_same_everywhere() -> None:
    """It is stored: it may not move without a new revision."""
    vector = EMBEDDER.embed_query("alpha")

    assert {at: round(value, 4) for at, value in enumerate(vector) if value} == {
        73: -0.2491,
        145: 0.2491,
        185: 0.2491,
        209: -0.8305,
        227: 0.2491,
        357: -0.2491,
    }


def test_passages_and_queries_are_embedded_alike() -> None:
    assert EMBEDDER.embed_passages(["alpha", "beta"]) == [EMBEDDER.embed_query("alpha"), EMBEDDER.embed_query("beta")]


@given(st.text())
def test_offsets_are_ordered_spans_of_the_text(text: str) -> None:
    (offsets,) = EMBEDDER.token_offsets([text])

    ends = [0, *(end for _, end in offsets)]
    assert all(previous <= start < end <= len(text) for previous, (start, end) in zip(ends, offsets, strict=False))
