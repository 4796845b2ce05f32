"""The packaged cross-encoder."""

from __future__ import annotations

import pytest

from coatcheck.domain.errors import StageUnavailable
from coatcheck.models.packaged import MS_MARCO, locate
from coatcheck.models.reranker import FastembedReranker, packaged_reranker

PASSAGES = [
    "Lunch was good, thanks.",
    "Light travels at 299,792 kilometres per second in a vacuum.",
    "The speed limit in town is 50.",
    "word " * 2_000,
    "",
]


@pytest.fixture(scope="module")
def reranker() -> FastembedReranker:
    folder = locate(MS_MARCO)
    assert folder is not None
    return packaged_reranker(folder)


def test_the_passage_that_answers_scores_highest(reranker: FastembedReranker) -> None:
    scores = reranker.score("What is the speed of light?", PASSAGES)

    assert len(scores) == len(PASSAGES)
    assert scores[1] == max(scores)


def test_a_score_does_not_depend_on_the_other_passages(reranker: FastembedReranker) -> None:
    together = reranker.score("What is the speed of light?", PASSAGES)

    alone = [reranker.score("What is the speed of light?", [passage])[0] for passage in PASSAGES]

    assert alone == pytest.approx(together, abs=1e-4)


def test_no_passages_have_no_scores(reranker: FastembedReranker) -> None:
    assert reranker.score("anything", []) == []


def test_a_model_that_cannot_be_loaded_makes_the_stage_unavailable() -> None:
    def load() -> None:
        raise RuntimeError("no such file")

    with pytest.raises(StageUnavailable):
        FastembedReranker(load, revision="broken", weights=None, english_only=True).score("query", ["passage"])  # type: ignore[arg-type]
