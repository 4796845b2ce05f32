"""The cycle collector of a serving process, in a process of its own: what it sets would stay for the other tests."""

from __future__ import annotations

import subprocess
import sys

_LOOK = """
import gc
from coatcheck.ops import garbage
garbage.settle()
assert gc.isenabled() and gc.get_freeze_count() > 1_000, gc.get_freeze_count()
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


def test_cycles_made_after_the_start_are_still_collected() -> None:
    subprocess.run([sys.executable, "-c", _LOOK], check=True, timeout=60)
