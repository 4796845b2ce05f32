"""Several runners of one model: as many requests at a time as there are, each by a runner that serves nobody else."""

from __future__ import annotations

import queue
from collections.abc import Sequence

import torch

from coatcheck.domain.errors import GpuRefused, Overloaded
from coatcheck.gpu.graphs.runner import GraphRunner


class RunnerPool:
    """Every method is safe from any thread. Each runner has graphs and buffers of its own; the weights are the model's."""

    def __init__(self, runners: Sequence[GraphRunner], *, limit_s: float) -> None:
        """``limit_s``: how long a request waits for a runner."""
        if not runners:
            raise GpuRefused("A pool without a runner serves nobody.")
        self._limit_s = limit_s
        # The last one used is the next one used: what it needs is the likeliest to be in caches.
        self._free: queue.LifoQueue[GraphRunner] = queue.LifoQueue()
        for runner in runners:
            self._free.put(runner)

    def run(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """As GraphRunner's. Raises Overloaded where no runner came free in time."""
        try:
            runner = self._free.get(timeout=self._limit_s)
        except queue.Empty as error:
            raise Overloaded("No graph runner came free in time.") from error
        try:
            return runner.run(ids, mask)
        finally:
            self._free.put(runner)
