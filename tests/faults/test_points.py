"""Every named point of the source stands in the list that the proofs go by."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path

from coatcheck.ops import faults
from tests.faults.points import POINTS

_REACHED = re.compile(r"\breach(?:_async)?\(([^)]*)\)")


def test_the_list_and_the_source_name_the_same_points() -> None:
    reached: Counter[str] = Counter()
    for path in Path(faults.__file__).parents[1].rglob("*.py"):
        if path.name != "faults.py":
            reached.update(_REACHED.findall(path.read_text("utf-8")))

    assert {name.strip('"') for name in reached} == {point.name for point in POINTS}
    assert all(name == f'"{name.strip(chr(34))}"' for name in reached), "a point is named by a literal"
    assert len({point.name for point in POINTS}) == len(POINTS)


async def test_of_a_point_that_is_held_for_the_first_alone_later_arrivals_overtake() -> None:
    passed: list[int] = []

    async def work(number: int) -> None:
        await faults.reach_async("after-claim")
        passed.append(number)

    async with faults.held("after-claim", first_alone=True) as hold:
        first = asyncio.create_task(work(1))
        await hold.reached()
        await work(2)
        hold.release()
        await first

    assert passed == [2, 1]
