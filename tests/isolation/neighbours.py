"""A tenant at its work, again and again: a window handed in, a question asked. As a process, one that asks ten times as much.

``python -m tests.isolation.neighbours URL KEY LOOPS PERIOD_S`` works until it is ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass, field
from uuid import uuid4

import httpx

from tests.windows import request, window


@dataclass(slots=True)
class Times:
    """Seconds of each answer, by what was asked."""

    compaction: list[float] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    refused: int = 0

    def p95(self, name: str) -> float:
        ordered = sorted(getattr(self, name))
        return float(ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))])

    def p50(self, name: str) -> float:
        return float(sorted(getattr(self, name))[len(getattr(self, name)) // 2])


async def turn(http: httpx.AsyncClient, times: Times) -> None:
    """One window of this turn's own, and a question about it."""
    mark = uuid4().hex[:12]
    began = time.perf_counter()
    made = await http.post("/v1/compactions", json=request(f"loop {mark[:2]}", window(calls=8, mark=mark)))
    handed_in = time.perf_counter()
    found = await http.post("/v1/recall", json={"query": f"why does {mark} fail", "top_k": 5})
    answered = time.perf_counter()
    if (made.status_code, found.status_code) == (201, 200):
        times.compaction.append(handed_in - began)
        times.recall.append(answered - handed_in)
    else:
        times.refused += 1


async def works(url: str, key: str, period_s: float, turns: int, times: Times) -> None:
    """So many turns, one every period where the one before has ended."""
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120) as http:
        for _ in range(turns):
            due = time.perf_counter() + period_s
            await turn(http, times)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def _many(url: str, key: str, loops: int, period_s: float) -> None:
    async def later(number: int) -> None:
        await asyncio.sleep(period_s * number / loops)
        await works(url, key, period_s, 10**9, Times())

    await asyncio.gather(*(later(number) for number in range(loops)))


if __name__ == "__main__":
    os.nice(15)  # it stands for machines of its own
    asyncio.run(_many(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
