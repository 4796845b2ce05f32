"""A bucket's arithmetic, by a clock that the test moves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.ops.buckets import TokenBucket


def test_a_minutes_worth_is_in_hand_and_comes_back_evenly() -> None:
    bucket = TokenBucket(60, now=0)

    for _ in range(60):
        assert bucket.wait_s(1, 0) == 0
        bucket.take(1, 0)

    assert bucket.wait_s(1, 0) == 1
    assert bucket.wait_s(1, 0.5) == 0.5
    assert bucket.wait_s(1, 1) == 0
    assert bucket.wait_s(30, 1) == 29


def test_idleness_saves_up_no_more_than_a_minutes_worth() -> None:
    bucket = TokenBucket(10, now=0)

    bucket.take(10, 3_600)

    assert bucket.wait_s(1, 3_600) == 6


def test_more_than_a_minutes_worth_is_had_from_a_full_bucket_and_paid_off_afterwards() -> None:
    bucket = TokenBucket(10, now=0)
    assert bucket.wait_s(25, 0) == 0

    bucket.take(25, 0)

    assert bucket.wait_s(0, 0) == 90  # until the debt is paid
    assert bucket.wait_s(25, 149) == pytest.approx(1)
    assert bucket.wait_s(25, 150) == 0


def test_another_rate_keeps_what_was_in_hand_in_proportion() -> None:
    bucket = TokenBucket(10, now=0)
    bucket.take(5, 0)

    bucket.change(100, 0)

    assert bucket.wait_s(50, 0) == 0
    assert bucket.wait_s(100, 0) == 30


def test_a_rate_that_was_too_low_by_mistake_leaves_no_debt_but_what_was_taken() -> None:
    bucket = TokenBucket(0.001, now=0)
    bucket.take(1, 0)
    assert bucket.wait_s(1, 0) > 50_000

    bucket.change(600, 0)

    assert bucket.wait_s(1, 0) < 61


def test_a_wait_ends_at_its_border_and_not_a_moment_before() -> None:
    bucket = TokenBucket(60, now=0)
    bucket.take(60, 0)

    for second in range(1, 61):
        assert bucket.wait_s(second, second - 0.001) == pytest.approx(0.001)
        assert bucket.wait_s(second, second) == 0


@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e12])
def test_every_rate_that_may_be_set_keeps_to_numbers(rate: float) -> None:
    bucket = TokenBucket(rate, now=0)

    for cost in (0.0, rate, 2.0**62):
        assert math.isfinite(bucket.wait_s(cost, 1e9))
        bucket.take(cost, 1e9)
    assert math.isfinite(bucket.wait_s(1.0, 1e9))
    bucket.change(1e12 if rate < 1 else 1e-6, 1e9)
    assert math.isfinite(bucket.wait_s(1.0, 1e9))


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(0, 50)), max_size=50))
def test_who_waits_as_long_as_it_is_told_is_let_in(steps: list[tuple[float, float]]) -> None:
    bucket, now = TokenBucket(20, now=0), 0.0

    for pause, cost in steps:
        now += pause
        now += bucket.wait_s(cost, now)
        assert bucket.wait_s(cost, now) < 1e-6
        bucket.take(cost, now)
