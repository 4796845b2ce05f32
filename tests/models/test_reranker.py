"""The packaged cross-encoder."""

from __future__ import annotations

from uuid import UUID

import pytest

from coatcheck.domain.errors import StageUnavailable
from coatcheck.identity.scopes import tenant_scope
from coatcheck.models.packaged import MS_MARCO, locate
from coatcheck.models.reranker import FastembedReranker, packaged_reranker
from coatcheck.models.reranking import RerankWorker
from coatcheck.ops.progress import ProgressBoard, Stage

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


def test_a_model_that_cannot_be_loaded_makes_the_stage_unavailable_and_costs_no_recall_another_load() -> None:
    tries = []

    def load() -> None:
        tries.append(1)
        raise RuntimeError("no such file")

    broken = FastembedReranker(load, revision="broken", weights=None, english_only=True)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(StageUnavailable):
            broken.score("query", ["passage"])

    assert tries == [1]


async def test_what_is_warm_is_loaded_once() -> None:
    folder, loaded = locate(MS_MARCO), []
    assert folder is not None
    packaged = packaged_reranker(folder)

    def load() -> object:
        loaded.append(1)
        return packaged._load()

    worker = RerankWorker(
        FastembedReranker(load, revision="counted", weights=None, english_only=True),  # type: ignore[arg-type]
        ProgressBoard([Stage("rerank", False, 60)]),
    )

    await worker.warm()
    before = len(loaded)
    await worker.score(tenant_scope(UUID(int=1)), "What is the speed of light?", PASSAGES, 20)
    await worker.close()

    assert (before, len(loaded)) == (1, 1)


async def test_warming_what_cannot_be_loaded_is_left_to_the_first_who_asks() -> None:
    def load() -> None:
        raise RuntimeError("no such file")

    worker = RerankWorker(
        FastembedReranker(load, revision="broken", weights=None, english_only=True),  # type: ignore[arg-type]
        ProgressBoard([Stage("rerank", False, 60)]),
    )

    await worker.warm()

    with pytest.raises(StageUnavailable):
        await worker.score(tenant_scope(UUID(int=1)), "query", PASSAGES, 20)
    await worker.close()
