"""A bucket's arithmetic, by a clock that the test moves."""

from __future__ import annotations

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


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(0, 50)), max_size=50))
def test_who_waits_as_long_as_it_is_told_is_let_in(steps: list[tuple[float, float]]) -> None:
    bucket, now = TokenBucket(20, now=0), 0.0

    for pause, cost in steps:
        now += pause
        now += bucket.wait_s(cost, now)
        assert bucket.wait_s(cost, now) < 1e-6
        bucket.take(cost, now)
