"""The measures, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from benchmark.stats import bootstrap_interval, evidence_recall, interleaved_seconds, ndcg, quantile


def test_quantiles_are_interpolated() -> None:
    values = [4.0, 1.0, 3.0, 2.0]

    assert quantile(values, 0.0) == 1.0
    assert quantile(values, 0.5) == 2.5
    assert quantile(values, 0.95) == pytest.approx(3.85)
    assert quantile(values, 1.0) == 4.0


def test_a_quantile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        quantile([], 0.5)


def test_recall_counts_each_designated_turn_once_and_only_above_the_cut() -> None:
    found = [{"a"}, set[str](), {"a", "b"}, {"c"}]

    assert evidence_recall(found, ("a", "b", "c", "d"), 1) == 0.25
    assert evidence_recall(found, ("a", "b", "c", "d"), 3) == 0.5
    assert evidence_recall(found, ("a", "b", "c", "d"), 10) == 0.75


def test_ndcg_is_one_for_the_best_order_and_discounts_a_late_find() -> None:
    designated = ("a", "b")

    assert ndcg([{"a"}, {"b"}, {"x"}], designated, 10) == pytest.approx(1.0)
    assert ndcg([{"x"}, {"a"}, {"y"}], designated, 10) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert ndcg([{"x"}], designated, 10) == 0.0


def test_a_turn_found_twice_gains_once() -> None:
    assert ndcg([{"a"}, {"a"}], ("a", "b"), 10) == ndcg([{"a"}], ("a", "b"), 10)


def test_the_bootstrap_interval_holds_the_mean_and_is_the_same_for_one_seed() -> None:
    values = [1.0] * 9 + [0.0] * 3

    low, high = bootstrap_interval(values, seed=3)

    assert low < 0.75 < high
    assert (low, high) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval([1.0] * 12, seed=3) == (1.0, 1.0)


def test_sides_take_turns_in_going_first() -> None:
    order: list[str] = []

    seconds = interleaved_seconds({"ours": lambda: order.append("ours"), "bare": lambda: order.append("bare")}, rounds=2)

    assert order == ["ours", "bare", "bare", "ours"]
    assert {name: len(values) for name, values in seconds.items()} == {"ours": 2, "bare": 2}
