"""How far ahead a time may lie is told by the asker's own lease, and is never less than what any work waits for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from coatcheck.store.ahead import furthest
from tests.tenants import EPOCH


@pytest.mark.parametrize(("lease_s", "ahead_s"), [(0.5, 600), (30, 600), (60, 600), (61, 610), (120, 1_200)])
def test_a_time_may_lie_ten_leases_ahead_and_ten_minutes_always(lease_s: float, ahead_s: float) -> None:
    assert furthest(EPOCH, EPOCH + timedelta(seconds=lease_s)) == EPOCH + timedelta(seconds=ahead_s)
