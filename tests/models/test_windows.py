"""Sentences, windows of tokens, and what a summariser is handed: pure functions of the text."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.models import sentences
from coatcheck.models.briefing import chosen
from coatcheck.models.windows import windows

PROSE = "The cache works. Does the queue? It does not!\nPort 8443 on 10.2.0.7 is open. 缓存可用。队列不可用。 Кэш работает."


def words(text: str) -> list[sentences.Span]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def test_sentences_end_with_their_marks_and_not_within_numbers() -> None:
    assert [PROSE[a:b] for a, b in sentences.spans(PROSE)] == [
        "The cache works.",
        "Does the queue?",
        "It does not!",
        "Port 8443 on 10.2.0.7 is open.",
        "缓存可用。",
        "队列不可用。",
        "Кэш работает.",
    ]


@given(st.text(max_size=200))
def test_sentences_hold_all_of_a_text_but_white_space(text: str) -> None:
    assert "".join("".join(text[a:b].split()) for a, b in sentences.spans(text)) == "".join(text.split())


@given(st.text(alphabet="ab. \n!", max_size=200), st.integers(0, 60))
def test_a_head_is_whole_sentences_within_its_length(text: str, max_chars: int) -> None:
    head = sentences.head(text, max_chars)

    assert len(head) <= max_chars
    assert text.startswith(head)
    assert not head or any(end == len(head) for _, end in sentences.spans(text))


def test_without_its_last_sentence() -> None:
    assert sentences.without_last("Alice owns it. The port is not") == "Alice owns it."
    assert sentences.without_last("The port is not") == ""
    assert sentences.without_last("") == ""


@given(st.lists(st.sampled_from(["a", "bb", "ccc.", "dd!"]), max_size=80), st.integers(4, 40))
def test_windows_hold_every_token_none_more_than_its_room_and_overlap(pieces: list[str], room: int) -> None:
    text = " ".join(pieces)
    places = words(text)

    found = windows(places, [start for start, _ in sentences.spans(text)], room, overlap=room // 4)

    for start, end in found:
        assert 0 < sum(1 for a, b in places if start <= a and b <= end) <= room
    assert {place for place in places if any(a <= place[0] and place[1] <= b for a, b in found)} == set(places)
    for (_, end), (start, _) in itertools.pairwise(found):
        shared = sum(1 for a, b in places if start <= a and b <= end)
        assert shared >= min(1, room // 4)


def test_windows_begin_and_end_with_sentences_where_they_can() -> None:
    text = "One two three four. Five six seven. Eight nine ten eleven. Twelve."

    found = windows(words(text), [start for start, _ in sentences.spans(text)], 8, overlap=2)

    assert [text[a:b] for a, b in found] == [
        "One two three four. Five six seven.",
        "Five six seven. Eight nine ten eleven. Twelve.",
    ]


@pytest.mark.parametrize("overlap", [0, 2])
def test_a_sentence_that_is_longer_than_a_window_is_read_in_pieces(overlap: int) -> None:
    text = " ".join(f"w{number}" for number in range(20))

    found = [text[a:b].split() for a, b in windows(words(text), [0], 6, overlap=overlap)]

    assert {word for window in found for word in window} == set(text.split())
    assert max(map(len, found)) == 6
    assert [len(set(a) & set(b)) for a, b in itertools.pairwise(found)] == [overlap] * (len(found) - 1)


def test_what_is_handed_over_keeps_its_order_and_both_ends_of_a_long_text() -> None:
    texts = ["first", "", "second " * 10, "third", "fourth " + "z" * 100]

    assert chosen(texts, 60, 40) == ["first", "third", "fourth " + "z" * 16 + " [...] " + "z" * 10]
    assert chosen([" ", ""], 60, 40) == []
