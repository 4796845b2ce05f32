"""What a reranker is asked, and what its scores are worth."""

from __future__ import annotations

import pytest

from coatcheck.memory.reranking import PASSAGE_CHARS, excerpt, order, suits


def test_equal_scores_keep_the_fused_order() -> None:
    assert order([1.5] * 20) == list(range(20))


def test_a_clear_score_brings_a_late_candidate_to_the_front() -> None:
    assert order([-10.0, -11.0, -9.0, -10.5, 8.0])[0] == 4


def test_a_slightly_better_score_does_not_overturn_the_fused_order() -> None:
    assert order([2.0, 1.0, 2.5, 2.2])[0] == 0


def test_no_candidates_have_no_order() -> None:
    assert order([]) == []


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("which port does staging use", True),
        ("10.2.0.7:8443 timeout", True),
        ("what does the café serve in the evening", True),
        ("какой порт у стенда", False),
        ("测试环境用哪个端口", False),
        ("nginx ポートは何番ですか", False),
        ("10.2.0.7:8443", False),
    ],
)
def test_a_model_of_english_is_asked_in_english(query: str, english: bool) -> None:
    assert suits(query, english_only=True) is english
    assert suits(query, english_only=False)


def test_a_short_text_is_read_whole() -> None:
    assert excerpt("port", "x" * PASSAGE_CHARS) == "x" * PASSAGE_CHARS


def test_of_a_long_text_the_stretch_with_the_querys_words_is_read() -> None:
    text = "word " * 700 + "Staging answers on port 9443 now. " + "word " * 300

    found = excerpt("Which PORT does staging use?", text)

    assert len(found) <= PASSAGE_CHARS
    assert "port 9443" in found


def test_a_long_text_without_the_querys_words_is_read_from_its_beginning() -> None:
    text = "".join(chr(97 + n % 26) for n in range(5_000))

    assert excerpt("something else", text) == text[:PASSAGE_CHARS]
