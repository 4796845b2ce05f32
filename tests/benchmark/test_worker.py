"""The model worker against the bare model."""

from __future__ import annotations

import argparse

from benchmark import worker
from benchmark.report import Report


def report_of(*arguments: str) -> Report:
    parser = argparse.ArgumentParser()
    worker.add_arguments(parser)
    return worker.run(parser.parse_args(arguments))


def test_both_sides_are_measured_in_pairs() -> None:
    results = report_of("--pairs", "1").results

    assert {"bare_wall_ms", "bare_cpu_ms", "worker_wall_ms", "worker_cpu_ms", "wall_ratio", "cpu_ratio"} == results.keys()
    assert all(isinstance(value, float) and value > 0 for value in results.values())


def test_without_a_reranker_nothing_is_measured_and_the_report_says_so() -> None:
    report = report_of("--reranker", "none")

    assert report.results == {}
    assert "Not measured" in report.notes[0]
