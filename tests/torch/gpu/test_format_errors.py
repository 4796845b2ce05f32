"""What the formats cost in attention, as the ``nvfp4`` benchmark measures it."""

from __future__ import annotations

import pytest

from benchmark import nvfp4


@pytest.mark.parametrize("spread", ["normal", "outlier channels", "small"])
def test_nvfp4_loses_more_than_fp8_which_loses_more_than_nothing(spread: str) -> None:
    found = nvfp4.measure(spread, 256, 4, seed=1)

    assert found["bf16"].largest == 0
    assert 0.99 < found["fp8"].cosine < 1
    assert 0.95 < found["nvfp4"].cosine < found["fp8"].cosine
