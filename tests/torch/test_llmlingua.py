"""The compressor on tiny checkpoints of both families: what it proposes is the text's own, whatever the checkpoint says."""

from __future__ import annotations

import resource
import threading
from pathlib import Path
from uuid import UUID

import pytest

from coatcheck.compaction.fact_guard import compare
from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import StageUnavailable
from coatcheck.models.llmlingua import LlmlinguaCompressor
from coatcheck.models.token_classifier import TokenClassifier
from tests.torch import labelled, token_classifiers

_TEXTS = labelled.texts(30)[::3]


def _budget(seconds: float = 60) -> Budget:
    return Budget.of(UUID(int=1), seconds)


def _is_within(shorter: str, text: str) -> bool:
    characters = iter(text)
    return all(character in characters for character in shorter)


@pytest.fixture(scope="module", params=["bert", "xlmr"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a name that says nothing of the family."""
    made: Path = getattr(token_classifiers, request.param)(tmp_path_factory.mktemp("checkpoint") / "of-ours", _TEXTS)
    return made


@pytest.fixture(scope="module")
def compressor(folder: Path) -> LlmlinguaCompressor:
    return LlmlinguaCompressor(folder, revision="tiny")


def test_what_it_proposes_is_shorter_and_passes_the_fact_guard(compressor: LlmlinguaCompressor) -> None:
    proposed = compressor.compress(_TEXTS, 0.6, _budget())

    assert all(_is_within(shorter, text) for text, shorter in zip(_TEXTS, proposed, strict=True))
    assert [str(fault) for text, shorter in zip(_TEXTS, proposed, strict=True) for fault in compare(text, shorter).faults] == []
    assert sum(len(shorter) < len(text) for text, shorter in zip(_TEXTS, proposed, strict=True)) > len(_TEXTS) / 2


def test_a_share_of_the_tokens_stays(compressor: LlmlinguaCompressor) -> None:
    text = " ".join(text for text in _TEXTS if text.isascii())

    lengths = [len(shorter) for rate in (0.0, 0.5, 0.9, 0.99, 1.0) for shorter in compressor.compress([text], rate, _budget())]

    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1] == len(text)
    assert lengths[2] > 0.8 * len(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "hi",
        "the",
        "?",
        "🙂 🙃 🙂",
        "the 🙂 a 🙃",
        "\u200b\ufeff the \u0301",
        "the \x00 a",
        "好",
        "[SEP]",
        "<s> </s>",
        "…",
    ],
)
@pytest.mark.parametrize("rate", [0.0, 0.6])
def test_a_text_of_next_to_nothing_is_answered(compressor: LlmlinguaCompressor, text: str, rate: float) -> None:
    (shorter,) = compressor.compress([text], rate, _budget())

    assert _is_within(shorter, text)
    assert bool(shorter.strip()) == bool(text.strip())


def test_what_looks_like_a_special_token_is_text(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "a [SEP] b <s> c </s> d [PAD] e <pad> [CLS]"

    read = TokenClassifier(folder, "compressor").tokens(text)

    special = {*tokenizer.all_special_ids} - {tokenizer.unk_token_id}
    assert special & {*tokenizer(text, add_special_tokens=False)["input_ids"]}
    assert not special & {*read.ids}


def test_an_answer_depends_on_its_text_alone(compressor: LlmlinguaCompressor) -> None:
    alone = [compressor.compress([text], 0.6, _budget())[0] for text in _TEXTS]

    assert compressor.compress(_TEXTS, 0.6, _budget()) == alone
    assert compressor.compress(_TEXTS[::-1], 0.6, _budget()) == alone[::-1]


def test_two_threads_get_the_answers_of_one(compressor: LlmlinguaCompressor) -> None:
    expected = compressor.compress(_TEXTS, 0.6, _budget())
    answers: list[list[str]] = []

    threads = [threading.Thread(target=lambda: answers.append(compressor.compress(_TEXTS, 0.6, _budget()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert answers == [expected, expected]


def test_a_lone_surrogate_is_no_obstacle(compressor: LlmlinguaCompressor) -> None:
    (shorter,) = compressor.compress(["the queue \ud83d is not here and it is there"], 0.0, _budget())

    assert _is_within(shorter, "the queue \ufffd is not here and it is there")
    assert len(shorter) < len("the queue \ufffd is not here and it is there")


@pytest.mark.parametrize("make", [token_classifiers.bert, token_classifiers.xlmr])
def test_a_long_text_is_read_to_its_end(make: token_classifiers.Make, tmp_path: Path) -> None:
    compressor = LlmlinguaCompressor(make(tmp_path / "short", _TEXTS, positions=48))
    text = " ".join(_TEXTS) + " x" * 2_000 + " Y" + "y" * 3_000 + " and so it is."

    (shorter,) = compressor.compress([text], 0.0, _budget())

    assert _is_within(shorter, text)
    assert "Y" + "y" * 3_000 in shorter
    assert len(shorter) < 0.95 * len(text)


def test_a_megabyte_is_answered_within_memory(tmp_path: Path) -> None:
    compressor = LlmlinguaCompressor(token_classifiers.bert(tmp_path / "made", _TEXTS))
    text = (" ".join(_TEXTS) + "\n") * (1_000_000 // len(" ".join(_TEXTS)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    (shorter,) = compressor.compress([text], 0.6, _budget(600))

    assert len(shorter) < len(text)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700 * 1024


def test_a_deadline_ends_it_between_two_chunks(compressor: LlmlinguaCompressor) -> None:
    ticks = iter(range(1_000))
    budget = Budget(UUID(int=1), ends_at=3.5, monotonic=lambda: float(next(ticks)))

    with pytest.raises(StageUnavailable, match="late"):
        compressor.compress([" ".join(_TEXTS)], 0.6, budget)

    assert next(ticks) == 5


def test_no_texts_have_no_answers(compressor: LlmlinguaCompressor) -> None:
    assert compressor.compress([], 0.6, _budget()) == []
