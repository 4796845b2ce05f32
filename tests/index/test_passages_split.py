"""Passages: few, balanced, complete; and what is not worth a vector."""

from __future__ import annotations

import base64
import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.index.passages import dense_worthy, split

TOKENS = 20


def word_offsets(text: str) -> list[tuple[int, int]]:
    """Tokens of at most four characters, so that words can be cut."""
    offsets: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        end = at
        while end < len(text) and end - at < 4 and not text[end].isspace():
            end += 1
        offsets.append((at, end))
        at = end
    return offsets


@given(st.text(alphabet="ab .\n", max_size=600), st.integers(min_value=1, max_value=40))
def test_passages_cover_the_text_within_the_input_size_and_are_as_few_as_can_be(text: str, input_tokens: int) -> None:
    offsets = word_offsets(text)

    spans = split(text, offsets, input_tokens)

    assert "".join(text[span.start : span.end] for span in spans) == text
    assert [span.number for span in spans] == list(range(len(spans)))
    assert len(spans) == max(1, math.ceil(len(offsets) / input_tokens))
    for span in spans:
        assert sum(1 for start, _ in offsets if span.start <= start < span.end) <= input_tokens


def test_passages_are_of_about_equal_size() -> None:
    text = "word " * (TOKENS * 2 + 1)

    sizes = [span.end - span.start for span in split(text, word_offsets(text), TOKENS)]

    assert max(sizes) - min(sizes) <= 5 * (TOKENS // 8 + 1)


def test_a_cut_prefers_them_also_where_a_token_begins_with_the_space_before_it() -> None:
    with_break = "aaaa " * 9 + "bbbb\n" + "cccc " * 12
    without_break = "aaaa " * 7 + "bbbbccccdddd " + "eeee " * 12

    breaks = [split(text, with_space(text), TOKENS)[1].start for text in (with_break, without_break)]

    assert with_break[breaks[0]] == "\n"
    assert without_break[breaks[1]] == " "


def with_space(text: str) -> list[tuple[int, int]]:
    """As SentencePiece's are where it marks a word's beginning in the place of the space."""
    return [(start - 1 if text[max(0, start - 1)].isspace() else start, end) for start, end in word_offsets(text)]


def test_a_cut_prefers_a_line_break_then_a_space() -> None:
    with_break = "aaaa " * 9 + "bbbb\n" + "cccc " * 12
    without_break = "aaaa " * 7 + "bbbbccccdddd " + "eeee " * 12

    first, second = split(with_break, word_offsets(with_break), TOKENS)
    third, fourth = split(without_break, word_offsets(without_break), TOKENS)

    assert with_break[second.start :].startswith("cccc")
    assert with_break[first.start : first.end].endswith("\n")
    assert without_break[third.end - 1] == " "
    assert fourth.start == third.end


def test_a_text_that_fits_is_one_passage() -> None:
    assert [(s.start, s.end) for s in split("  alpha beta ", word_offsets("  alpha beta "), TOKENS)] == [(0, 13)]


def test_an_empty_text_is_one_empty_passage() -> None:
    assert [(s.number, s.start, s.end) for s in split("", [], TOKENS)] == [(0, 0, 0)]


def _random_bytes(size: int) -> bytes:
    return random.Random(5).randbytes(size)


WORTHY = {
    "prose": "We decided to keep PostgreSQL 16 because the replica already runs it. " * 3,
    "a short answer": "ok",
    "a number": "8443",
    "Chinese without spaces": "我们昨天讨论了数据库的迁移计划，决定使用新的集群来承载流量。" * 10,
    "code": "def add(a: int, b: int) -> int:\n    return a + b\n\n\nclass Box:\n    items: list[str] = []\n" * 4,
    "a log": "\n".join(f"2026-05-{n % 28 + 1:02d} INFO job {n} took {n * 37 % 91} ms on worker {n % 7}" for n in range(60)),
    "a list of paths": "\n".join(f"/usr/local/lib/python3.11/site-packages/pkg{n}/sub_module/file{n}.py" for n in range(40)),
    "one long path": "File created: /home/user/projects/worktrees/a0y/priv/repo/migrations/20260212165422_add_index.exs",
    "JSON with text": json.dumps(
        {"path": "notes.md", "content": "the port is 8443 and the host is aoi " * 8}, separators=(",", ":")
    ),
    "snake case": "test_the_very_long_function_name_that_somebody_wrote_in_a_hurry " * 4,
}
UNWORTHY = {
    "nothing": "",
    "white space": " \n\t" * 50,
    "base64": base64.b64encode(_random_bytes(2_000)).decode(),
    "base64 in lines": "\n".join(base64.b64encode(_random_bytes(48)).decode() for _ in range(40)),
    "short base64": base64.b64encode(_random_bytes(100)).decode(),
    "hex": _random_bytes(1_000).hex(),
    "a data URL": "data:image/png;base64," + base64.b64encode(_random_bytes(500)).decode(),
    "minified code": "function a(b){return b.c&&b.d?e(b):f(b)};var g=h||{};" * 30,
    "one character": "A" * 3_000,
    "one line again and again": "the quick brown fox\n" * 150,
    "two lines again and again": "retrying the connection now\nstill no answer from the host\n" * 60,
    "no scalar values": "\ufffd" * 40,
    "half no scalar values": "abc\ufffd\ufffd\ufffd " * 40,
}


@pytest.mark.parametrize("name", WORTHY)
def test_text_is_worth_a_vector(name: str) -> None:
    assert dense_worthy(WORTHY[name])


@pytest.mark.parametrize("name", UNWORTHY)
def test_data_is_not_worth_a_vector(name: str) -> None:
    assert not dense_worthy(UNWORTHY[name])
