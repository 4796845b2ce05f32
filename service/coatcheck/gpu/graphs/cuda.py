"""Graphs of CUDA. Nothing of this file has run on a GPU yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from coatcheck.domain.errors import GpuRefused, GpuUnsupported

WARM_UPS = 3
"""As torch's own helpers do: the first runs compile kernels and take workspaces, which must not happen while capturing."""


@dataclass(frozen=True, slots=True)
class CudaCaptured:
    graph: torch.cuda.CUDAGraph
    output: torch.Tensor

    def replay(self) -> None:
        self.graph.replay()


class CudaGraphs:
    """GraphBackend of one device, for one runner. Raises GpuUnsupported where there is none.

    All graphs of a backend share one pool of memory: they never run at the same time, and none reads what another one left. torch
    captures one graph at a time in a process: who makes several runners makes them one after the other.
    """

    def __init__(self, device: str = "cuda") -> None:
        if not torch.cuda.is_available():
            raise GpuUnsupported("CUDA graphs need a CUDA device, and torch finds none.")
        named = torch.device(device)
        self.device = torch.device("cuda", torch.cuda.current_device() if named.index is None else named.index)
        with torch.cuda.device(self.device):
            self._memory = torch.cuda.graph_pool_handle()
            self._side = torch.cuda.Stream()  # one for all of them: the pool is shared within a stream alone
            self._served = torch.cuda.Event()

    def capture(self, region: Callable[[], torch.Tensor]) -> CudaCaptured:
        with torch.cuda.device(self.device):
            current = torch.cuda.current_stream()
            self._side.wait_stream(current)
            with torch.cuda.stream(self._side):
                for _ in range(WARM_UPS):
                    region()
            current.wait_stream(self._side)
            graph = torch.cuda.CUDAGraph()
            try:
                # Of this thread alone: what others do on the device meanwhile is neither captured nor an error.
                with torch.cuda.graph(graph, pool=self._memory, stream=self._side, capture_error_mode="thread_local"):
                    output = region()
            except RuntimeError as error:
                reason = str(error).partition("\n")[0]
                raise GpuRefused(f"CUDA cannot capture this: {reason}") from error
            finally:
                torch.cuda.set_stream(current)  # where the end of a capture fails, torch leaves its stream in place (2.13)
            torch.cuda.synchronize()
        return CudaCaptured(graph, output)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """On the caller's stream, behind the request before, which may have come on another one and still be running."""
        with torch.cuda.device(self.device):
            stream = torch.cuda.current_stream()
            stream.wait_event(self._served)
            try:
                yield
            finally:
                self._served.record(stream)
