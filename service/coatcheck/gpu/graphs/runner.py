"""One runner: a graph for each bucket, each with buffers of its own, and one request at a time.

What a request brings is copied into the buffers, all of it and padded; what it takes away is a copy. So no request can read what
another one left. The additive mask is made outside of the captured region: from a mask of two dimensions transformers would read a
number on the host while it captures. T5's relative positions are computed by each bucket's own region, for that bucket's length.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.graphs.backend import Captured, GraphBackend
from coatcheck.gpu.graphs.buckets import Buckets, Shape

Forward = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Token ids (rows, tokens) and their additive mask (rows, 1, 1, tokens) in, hidden states (rows, tokens, width) out."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The memory that one graph reads, and the graph."""

    ids: torch.Tensor
    mask: torch.Tensor
    captured: Captured


class GraphRunner:
    """Captures when it is made. Raises GpuRefused where the forward cannot be captured."""

    def __init__(self, forward: Forward, buckets: Buckets, backend: GraphBackend, *, dtype: torch.dtype, pad_id: int) -> None:
        """``dtype`` is the additive mask's, which is the model's."""
        self._forward = forward
        self._buckets = buckets
        self._backend = backend
        self._dtype = dtype
        self._pad_id = pad_id
        self._serving = threading.Lock()
        with torch.no_grad():
            # The longest first: what it needs of memory, the shorter ones find there.
            self._captured = {shape: self._bucket(shape) for shape in reversed(buckets.shapes)}

    def run(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The hidden states of these tokens, in memory of the caller's own. ``mask`` (rows, tokens) is 1 where a token counts.

        What fits no bucket runs without a graph. Raises GpuRefused while the runner serves another request.
        """
        shape = _shape(ids, mask)
        with self._alone(), self._backend.serving(), torch.no_grad():
            fitting = self._buckets.fitting(shape)
            if fitting is None:
                return self._eager(ids, mask)
            bucket = self._captured[fitting]
            self._fill(bucket, ids, mask)
            bucket.captured.replay()
            return self._answer(bucket, shape)

    def _bucket(self, shape: Shape) -> Bucket:
        device = self._backend.device
        ids = torch.full((shape.rows, shape.tokens), self._pad_id, dtype=torch.int64, device=device)
        mask = torch.zeros((shape.rows, 1, 1, shape.tokens), dtype=self._dtype, device=device)
        return Bucket(ids, mask, self._backend.capture(self._region(ids, mask)))

    def _region(self, ids: torch.Tensor, mask: torch.Tensor) -> Callable[[], torch.Tensor]:
        """What is captured."""
        return lambda: self._forward(ids, mask)

    def _fill(self, bucket: Bucket, ids: torch.Tensor, mask: torch.Tensor) -> None:
        """All of the bucket's memory, also what is masked: nothing times an infinity that stayed there is no number."""
        rows, tokens = ids.shape
        bucket.ids.fill_(self._pad_id)
        bucket.ids[:rows, :tokens].copy_(ids)
        bucket.mask[:rows].fill_(torch.finfo(self._dtype).min)
        bucket.mask[:rows, :, :, :tokens].copy_(additive(mask, self._dtype))

    def _answer(self, bucket: Bucket, shape: Shape) -> torch.Tensor:
        return bucket.captured.output[: shape.rows, : shape.tokens].clone()

    def _eager(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        device = self._backend.device
        return self._forward(ids.to(device), additive(mask.to(device), self._dtype))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._serving.acquire(blocking=False):
            raise GpuRefused("This runner is serving another request, whose memory it would write into: a pool has several.")
        try:
            yield
        finally:
            self._serving.release()


def additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """(rows, tokens) of 1 and 0 as (rows, 1, 1, tokens) of 0 and the least number that there is."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask == 0, torch.finfo(dtype).min)[
        :, None, None, :
    ]


def _shape(ids: torch.Tensor, mask: torch.Tensor) -> Shape:
    if ids.dim() != 2 or ids.dtype not in (torch.int64, torch.int32) or not ids.numel():
        raise GpuRefused(f"Token ids are (rows, tokens) of int64 or int32, and some; not {tuple(ids.shape)} of {ids.dtype}.")
    if mask.shape != ids.shape:
        raise GpuRefused(f"A mask {tuple(mask.shape)} is not of the shape of its token ids, {tuple(ids.shape)}.")
    return Shape(int(ids.shape[1]), int(ids.shape[0]))
