"""What captures and replays: CUDA (``cuda``), or a recording of torch's operations that needs no GPU (``recording``)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import torch


class Captured(Protocol):
    """A region that was captured: the same operations on the same memory, as often as it is replayed."""

    @property
    def output(self) -> torch.Tensor:
        """Where each replay leaves its result. It holds none before the first one, since capturing computes nothing."""
        ...

    def replay(self) -> None:
        """Reads what the region's inputs hold now."""
        ...


class GraphBackend(Protocol):
    @property
    def device(self) -> torch.device: ...

    def capture(self, region: Callable[[], torch.Tensor]) -> Captured:
        """Runs the region to warm it up, then captures it. Gradients are off.

        Raises GpuRefused where something in it cannot be captured: the host reads a number, or a shape hangs on one.
        """
        ...

    def serving(self) -> AbstractContextManager[None]:
        """Around one request, from the writing of inputs to the copy of the output: what another stream did before comes first."""
        ...
