"""The cost of isolation, measured on a small scale."""

from __future__ import annotations

import argparse

import pytest

from benchmark import isolation


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    isolation.add_arguments(parser)
    return parser.parse_args(["--segments", "200", "--points", "600", "--rounds", "4", "--embedder", "hashing", *arguments])


def test_every_pair_is_measured_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    report = isolation.run(options())

    assert set(report.results) == {"SQL", "whole_recall", "lexical_leg", "dense_leg"}
    for figures in report.results.values():
        assert isinstance(figures, dict)
        assert set(figures) == {"bare_p50_ms", "isolated_p50_ms", "ratio", "more_ms", "more_cpu_ms"}
        assert all(isinstance(figure, float) for figure in figures.values())
        assert float(str(figures["bare_p50_ms"])) > 0
