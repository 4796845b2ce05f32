"""Jobs over the routes, as an operator runs them: started, followed, and ended before a test goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

LIMIT_S = 30
SETTLED_S = 60


async def job(http: httpx.AsyncClient, kind: str, **body: object) -> dict[str, Any]:
    """Starts a job and follows it to its end."""
    started = await http.post(f"/v1/admin/{kind}", json=body or None)
    assert started.status_code == 202, started.text
    return await followed(http, started.headers["location"])


async def settled(http: httpx.AsyncClient) -> None:
    """Returns when nothing is owed to the index any more, whoever does it: a sweep is due once the last lease is over."""
    async with asyncio.timeout(SETTLED_S):
        pending = True
        while pending:
            pending = bool((await job(http, "reconcile"))["progress"]["pending"])
            await asyncio.sleep(0.02)


async def followed(http: httpx.AsyncClient, location: str) -> dict[str, Any]:
    async with asyncio.timeout(LIMIT_S):
        while True:
            answer = await http.get(location)
            assert answer.status_code == 200, answer.text
            seen: dict[str, Any] = answer.json()
            if seen["status"] != "running":
                assert seen["status"] == "done", seen
                return seen
            await asyncio.sleep(0.01)


def kinds(job: dict[str, Any]) -> list[str]:
    """The kinds of what a job found, one a finding."""
    return sorted(finding["kind"] for finding in job["findings"])
