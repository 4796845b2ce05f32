"""Planning beside the event loop: in a thread of its own, on a core while it computes, off it while a model is waited for.

A model that stands still then holds up the windows that it was asked about, until their budgets end, and nothing else: neither
the slots that others wait for nor the threads that other work is done in.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from coatcheck.compaction import effort
from coatcheck.compaction.planner import Planner, PlanRequest
from coatcheck.domain.plans import Plan
from coatcheck.ops.progress import ProgressBoard
from coatcheck.ops.slots import Slot

STAGE = "plan"


class Planning:
    """The planner for callers on the event loop. ``at_once`` is as many plans as there can be at the same time."""

    def __init__(self, planner: Planner, progress: ProgressBoard, at_once: int) -> None:
        self._planner = planner
        self._progress = progress
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix=STAGE)

    @property
    def revisions(self) -> dict[str, str]:
        """What decides: the pipeline, the policy, the rules and the models by name."""
        return self._planner.revisions

    async def __call__(self, slot: Slot, request: PlanRequest) -> Plan:
        """Plans in the caller's slot. Raises what ``Planner.plan`` raises."""
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._threads, context.run, self._plan, slot, request)

    def close(self) -> None:
        """Takes nothing more on. A plan under way ends by itself, at the latest when its budget does."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _plan(self, slot: Slot, request: PlanRequest) -> Plan:
        @contextmanager
        def aside() -> Iterator[None]:
            """A model's silence is no standstill of planning: the model's own stage reports it."""
            with piece.aside(), slot.aside():
                yield

        with self._progress.stage(STAGE) as piece, effort.noticed(piece.advance):
            return self._planner.plan(dataclasses.replace(request, budget=dataclasses.replace(request.budget, aside=aside)))
