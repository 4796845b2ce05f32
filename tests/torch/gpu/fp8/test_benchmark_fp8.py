"""The ``fp8`` benchmark from end to end on the smallest model, and its measures on answers that are known."""

from __future__ import annotations

import argparse
import math

import pytest
import torch

from benchmark import fp8
from benchmark.fp8_model import Example


def test_it_measures_both_models_and_says_that_no_figure_is_of_a_gpu() -> None:
    parser = argparse.ArgumentParser()
    fp8.add_arguments(parser)

    report = fp8.run(parser.parse_args(["--blocks", "1", "--hidden", "32", "--steps", "2", "--examples", "12", "--rounds", "1"]))

    assert report.results["quantised_matrices"] == 7
    assert report.results["findings_of_the_audit"] == []
    assert set(report.results["milliseconds"]) == {"1", "2", "4", "8", "16", "32"}  # type: ignore[arg-type]
    assert any("no figure here was measured on a GPU" in note for note in report.notes)


def test_macro_f1_weighs_every_label_alike_and_confidence_that_is_right_costs_nothing() -> None:
    sure = torch.tensor([[9.0, 0.0], [9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    given = [Example("", "a"), Example("", "a"), Example("", "a"), Example("", "b")]

    right = fp8._quality(sure, given, ["a", "b"])
    wrong = fp8._quality(torch.tensor([[9.0, 0.0]]).expand(4, 2), given, ["a", "b"])

    assert right["macro_f1"] == 1.0
    assert right["calibration_error"] < 0.001
    # All said to be a: F1 of a is 6/7, of b 0; and sure of it in four, right in three.
    assert wrong["macro_f1"] == pytest.approx(3 / 7)
    assert wrong["calibration_error"] == pytest.approx(0.25, abs=0.001)


def test_the_distance_of_two_models_is_that_of_their_shares() -> None:
    even, sure = torch.zeros(1, 2), torch.tensor([[0.0, math.log(3)]])

    found = fp8._distance(even, sure)

    assert found["largest_share"] == pytest.approx(0.25)
    assert found["mean_kl"] == pytest.approx(0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75))
    assert fp8._distance(sure, sure)["agreement"] == 1.0
