"""The ``fp8`` benchmark: what it says where torch is not, and its measures on answers that are known."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

import pytest

from benchmark import fp8, fp8_model


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    fp8.add_arguments(parser)
    return parser.parse_args(given)


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_it_measures_nothing_and_says_so() -> None:
    report = fp8.run(options())

    assert report.results == {}
    assert any("torch" in note for note in report.notes)


def test_made_examples_are_the_same_for_a_seed_and_each_topic_has_its_share() -> None:
    made = fp8_model.examples(60, seed=1)

    assert made == fp8_model.examples(60, seed=1)
    assert made != fp8_model.examples(60, seed=2)
    assert {topic: sum(one.label == topic for one in made) for topic in fp8_model.TOPICS} == dict.fromkeys(fp8_model.TOPICS, 10)
