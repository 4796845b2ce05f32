"""The cycle collector of a serving process, in a process of its own: what it sets would stay for the other tests."""

from __future__ import annotations

import subprocess
import sys

import pytest

_LOOK = """
import gc
from coatcheck.ops import garbage
garbage.STEP()
assert gc.isenabled() and (gc.get_freeze_count() > 1_000) == ("STEP" == "settle"), gc.get_freeze_count()
class Knot: freed = 0
class Loop(Knot):
    def __del__(self): Knot.freed += 1
def tie():
    a, b = Loop(), Loop()
    a.other, b.other = b, a
for _ in range(60_000):
    tie()
assert Knot.freed > 0
"""


@pytest.mark.parametrize("step", ["look_seldom", "settle"])
def test_cycles_made_during_the_start_and_after_it_are_still_collected(step: str) -> None:
    subprocess.run([sys.executable, "-c", _LOOK.replace("STEP", step)], check=True, timeout=60)
