"""Work that outlives its request: in one process, the same request at the same time awaits the first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    """Tasks by key. A task ends by itself; nobody who waits for it can cancel it."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[T]] = {}

    def joined(self, key: str) -> bool:
        """Whether ``start`` would join work that is under way."""
        return key in self._tasks

    def start(self, key: str, work: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        """The task under this key, begun if there is none."""
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.ensure_future(_run(work))
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._ended(key, done))
        return task

    async def drain(self, work_s: float, cancel_s: float) -> None:
        """Waits for what is under way, then cancels the rest and waits for that, so that leases are given back."""
        tasks = set(self._tasks.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=work_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=cancel_s)

    def _ended(self, key: str, task: asyncio.Task[T]) -> None:
        self._tasks.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen, so that an error nobody waits for any more is not reported as never retrieved


async def _run(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
