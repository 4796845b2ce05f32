"""The comparison, whole, through the product's routes; and what counts as found."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from benchmark import qa
from benchmark.corpus import Question
from benchmark.qa import Material

PORT = Question("port", "which port?", "50501", "port")
PASSWORD = Question("unknown", "what is the password?", None, "password")


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    qa.add_arguments(parser)
    return parser.parse_args(arguments)


def test_a_value_counts_only_in_the_part_that_is_searched() -> None:
    material = Material("recall", PORT, "handoff says 50501\n\nrecalled: nothing", "recalled: nothing", False)

    assert not material.value_present
    assert replace(material, searched="grpc_port = 50501").value_present


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Its password was never written down", False),
        ("Its password is kept in the vault", False),
        ("the password of the fax bridge", False),
        ("password: heron-quay-7", True),
        ("The password is heron", True),
    ],
)
def test_for_the_unanswerable_question_any_stated_password_counts(text: str, stated: bool) -> None:
    assert Material("recall", PASSWORD, text, text, True).value_present is stated


def test_the_comparison_runs_without_a_model_and_says_so() -> None:
    report = qa.run(options("--embedder", "hashing", "--seed", "3"))

    results = report.results
    assert (results["segments"], results["by_hash"], results["by_manifest"]) == (49, 49, 49)
    arms = results["arms"]
    assert isinstance(arms, dict)
    assert list(arms) == ["full", "handoff", "recall", "verbatim"]
    for arm in arms.values():
        assert isinstance(arm, dict)
        assert {"input_chars", "evidence_top5", "value_present"} <= arm.keys()
        assert "answers" not in arm
    full = arms["full"]
    assert isinstance(full, dict)
    assert (full["evidence_top5"], full["value_present"]) == (12, 11)
    assert any("retrieval part ran alone" in note for note in report.notes)


def test_only_the_arms_that_are_asked_for_are_reported() -> None:
    report = qa.run(options("--embedder", "none", "--arms", "recall"))

    arms = report.results["arms"]
    assert isinstance(arms, dict)
    assert list(arms) == ["recall"]
    assert "recall_input_share" not in report.results
