"""What may differ between two prompts of one meaning is a closed list."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.memory.cache_guard import MAX_CHARS, normal_form
from coatcheck.memory.cache_matching import best, closing_text
from coatcheck.store.response_cache import Comparable
from tests.memory.cache_pairs import FREE_PARAPHRASES, NEAR_OPPOSITES, SAME_QUESTION

OPPOSITES = [pytest.param(one, other, id=f"{kind}: {one}") for kind, pairs in NEAR_OPPOSITES.items() for one, other in pairs]


def same(one: str, other: str) -> bool:
    form = normal_form(one)
    return form is not None and form == normal_form(other)


@pytest.mark.parametrize(("one", "other"), OPPOSITES)
def test_near_opposites_have_no_form_in_common(one: str, other: str) -> None:
    assert not same(one, other)
    for before in ("Please ", "Hello, ", "I want you to "):
        assert not same(before + one, other)
        assert not same(one, before + other)


@pytest.mark.parametrize(("one", "other"), SAME_QUESTION)
def test_courtesies_and_spelling_make_no_other_question(one: str, other: str) -> None:
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(("one", "other"), FREE_PARAPHRASES)
def test_what_is_said_in_other_words_is_generated_again(one: str, other: str) -> None:
    assert not same(one, other)


@given(st.text(max_size=60), st.sampled_from("0123456789"), st.sampled_from("0123456789"))
def test_no_text_around_a_digit_makes_another_digit_the_same(around: str, one: str, other: str) -> None:
    if one != other:
        assert not same(f"{around} {one}", f"{around} {other}")
        assert not same(f"Is {one} {around}", f"Is {other} {around}")


@given(st.text(alphabet="abc .?!", min_size=1, max_size=40))
def test_a_form_is_its_own_form(text: str) -> None:
    form = normal_form(text)

    assert form is None or normal_form(form) == form


@pytest.mark.parametrize("text", ["x" * (MAX_CHARS + 1), "", " ", "a\nb", "a `b`", 'a "b"', "\x00"])
def test_some_texts_have_none_and_count_as_they_are(text: str) -> None:
    assert normal_form(text) is None


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("a", "a"),
        ([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], "u"),
        ([{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}], None),
        ([{"role": "user", "content": [{"type": "text", "text": "u"}]}], None),
        ([{"role": "tool", "content": "t"}], None),
        ([], None),
        (["u"], None),
    ],
)
def test_only_what_a_user_said_last_is_compared_by_meaning(prompt: str | list[object], text: str | None) -> None:
    assert closing_text(prompt)[1] == text  # type: ignore[arg-type]


def test_all_that_stands_before_it_is_the_frame() -> None:
    def frame(before: str, **more: str) -> object:
        return closing_text([{"role": "user", "content": before}, {"role": "user", "content": "u", **more}])[0]

    assert frame("a") == frame("a")
    assert frame("a") != frame("b")
    assert frame("a") != frame("a", name="bob")


def entry(number: int, guard: str, vector: list[float]) -> Comparable:
    return Comparable(UUID(int=number), guard, np.asarray(vector, "<f4").tobytes())


def test_both_gates_have_to_open() -> None:
    asked = np.asarray([1, 0], "<f4").tobytes()
    alike_opposite, unlike_same = entry(1, "other", [1, 0]), entry(2, "guard", [0, 1])
    near, nearer = entry(3, "guard", [0.95, 0.31]), entry(4, "guard", [0.99, 0.14])

    assert best([alike_opposite, unlike_same], asked, "guard", 0.9) == (None, 1.0)
    assert best([unlike_same], asked, "guard", 0.9) == (None, 0.0)
    assert best([alike_opposite, unlike_same, near, nearer], asked, "guard", 0.9)[0] == UUID(int=4)
