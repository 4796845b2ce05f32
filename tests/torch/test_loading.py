"""Models that are loaded at the same time, each by its stage's thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

from coatcheck.domain.budgets import Budget
from coatcheck.models.entailment import CrossEncoderEntailment
from coatcheck.models.gliclass import GliclassRouter
from coatcheck.models.seq2seq import Seq2SeqSummariser
from tests.torch import tiny, tiny_transformers


def test_models_that_load_at_the_same_time_are_whole(tmp_path: Path) -> None:
    """Their library keeps in globals what it is about: weights that were there were missing, of a model or two in most runs."""
    tiny.gliclass(tmp_path / "router", ["the port"], ["facts"])
    tiny_transformers.classifier(tmp_path / "gate")
    tiny_transformers.summariser(tmp_path / "summariser")

    def soon() -> Budget:
        return Budget.of(UUID(int=1), 120)

    def ask(number: int) -> object:
        if number % 3 == 0:
            return GliclassRouter(tmp_path / "router").route(["the port"], ["facts"], soon())
        if number % 3 == 1:
            return CrossEncoderEntailment(tmp_path / "gate", revision="gate").judge([("the port is 8443", "the port")], soon())
        return Seq2SeqSummariser(tmp_path / "summariser", revision="summariser").summarise(["the cache works well"], 200, soon())

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(12)))

    assert [answers.count(answer) for answer in answers[:3]] == [4, 4, 4]
