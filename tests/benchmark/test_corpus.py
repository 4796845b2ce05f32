"""The synthetic history keeps the make-up that the comparison relies on, for every seed."""

from __future__ import annotations

import pytest

from benchmark.corpus import UNKNOWN, build, diagnostics_window
from coatcheck.domain.canonical import to_bytes
from coatcheck.domain.segments import SEGMENT_MAX_CHARS

SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_history_has_49_different_records_of_one_segment_each_and_about_50000_characters(seed: int) -> None:
    corpus = build(seed)

    assert len({record.text for record in corpus.records}) == 49
    assert all(len(record.text) <= SEGMENT_MAX_CHARS for record in corpus.records)
    assert 48_000 < corpus.text_chars < 52_000


@pytest.mark.parametrize("seed", SEEDS)
def test_each_value_stands_in_its_designated_record_and_in_no_other(seed: int) -> None:
    corpus = build(seed)

    holders = {q.key: [r.key for r in corpus.records if q.value in r.text] for q in corpus.questions if q.value is not None}

    assert holders == {q.key: [q.evidence] for q in corpus.questions if q.value is not None}
    assert len(holders) == 11


def test_no_question_and_no_call_gives_a_value_away() -> None:
    corpus = build(1)
    calls = to_bytes([message for message in corpus.messages() if isinstance(message, dict) and message["role"] == "assistant"])

    for question in corpus.questions:
        if question.value is not None:
            assert question.value not in " ".join(q.text for q in corpus.questions)
            assert to_bytes(question.value)[1:-1] not in calls


@pytest.mark.parametrize("seed", SEEDS)
def test_the_correction_stands_after_what_it_corrects(seed: int) -> None:
    keys = [record.key for record in build(seed).records]

    assert keys.index("superseded") < keys.index("revision")


def test_unknown_is_the_right_answer_where_the_value_was_never_written_down() -> None:
    unknown = next(question for question in build(1).questions if question.value is None)

    assert unknown.answer == UNKNOWN
    assert unknown.evidence == "password"


def test_one_seed_gives_one_history_and_another_seed_another() -> None:
    assert build(4).sha256 == build(4).sha256
    assert build(4).sha256 != build(5).sha256


def test_every_tool_result_stands_behind_its_call() -> None:
    messages = build(2).messages()

    for call, result in zip(messages[::2], messages[1::2], strict=True):
        assert isinstance(call, dict)
        assert isinstance(result, dict)
        assert isinstance(call["tool_calls"], list)
        first = call["tool_calls"][0]
        assert isinstance(first, dict)
        assert first["id"] == result["tool_call_id"]


def test_the_diagnostics_window_has_24_results_and_56443_characters() -> None:
    results = [m["content"] for m in diagnostics_window(1) if isinstance(m, dict) and m["role"] == "tool"]

    assert len(results) == 24
    assert sum(len(str(text)) for text in results) == 56_443
