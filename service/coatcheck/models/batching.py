"""Texts in small batches, and several pieces of work as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence


async def together(work: Sequence[Coroutine[None, None, None]]) -> None:
    """Runs all; the first failure, or the caller's leave, ends the others."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def batches_of(texts: Sequence[str], order: Sequence[int], max_chars: Callable[[], int], max_texts: int) -> Iterator[list[int]]:
    """Positions in their order, in batches of one text at least and of no more than so many characters and texts.

    How many characters is asked anew for each, once the batch before it is done.
    """
    batch: list[int] = []
    chars = 0
    most = max_chars()
    for position in order:
        if batch and (chars + len(texts[position]) > most or len(batch) >= max_texts):
            yield batch
            batch, chars, most = [], 0, max_chars()
        batch.append(position)
        chars += len(texts[position])
    if batch:
        yield batch
