"""Runners with one fault each: those of which the field tells, and some beside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from coatcheck.gpu.graphs import GraphRunner, Shape
from coatcheck.gpu.graphs.runner import Bucket, additive


class MissingClone(GraphRunner):
    """The answer is the graph's own memory, which the next request writes."""

    def _answer(self, bucket: Bucket, shape: Shape) -> torch.Tensor:
        return bucket.captured.output[: shape.rows, : shape.tokens]


class StaleMask(GraphRunner):
    """The mask is the one of the request before."""

    def _fill(self, bucket: Bucket, ids: torch.Tensor, mask: torch.Tensor) -> None:
        bucket.ids.fill_(self._pad_id)
        bucket.ids[: len(ids), : ids.shape[1]].copy_(ids)


class StaleTail(GraphRunner):
    """What a longer request left behind the tokens of this one still counts."""

    def _fill(self, bucket: Bucket, ids: torch.Tensor, mask: torch.Tensor) -> None:
        bucket.ids[: len(ids), : ids.shape[1]].copy_(ids)
        bucket.mask[: len(ids), :, :, : ids.shape[1]].copy_(additive(mask, self._dtype))


class StaleInputs(GraphRunner):
    """The graph reads the tensors of the request that it was captured with."""

    def _fill(self, bucket: Bucket, ids: torch.Tensor, mask: torch.Tensor) -> None:
        super()._fill(Bucket(bucket.ids.clone(), bucket.mask, bucket.captured), ids, mask)


class ScalarOfTheMask(GraphRunner):
    """A mask of two dimensions goes into the captured region, where transformers asks the host whether it hides anything."""

    def _region(self, ids: torch.Tensor, mask: torch.Tensor) -> Callable[[], torch.Tensor]:
        return lambda: self._forward(ids, (mask[:, 0, 0, :] == 0).long())


class ScalarOfTheLength(GraphRunner):
    """The region cuts its output to a length that it reads on the host."""

    def _region(self, ids: torch.Tensor, mask: torch.Tensor) -> Callable[[], torch.Tensor]:
        return lambda: self._forward(ids, mask)[:, : int((mask == 0).sum())]


class BiasOfAnotherGraph(GraphRunner):
    """The relative positions are computed while the first bucket is captured, and the others cut theirs out of them."""

    def __init__(self, forward: Any, *given: Any, **named: Any) -> None:
        self._attention = named.pop("attention")
        self._known: torch.Tensor | None = None
        super().__init__(forward, *given, **named)

    def _bias(self, compute: Callable[..., torch.Tensor], query_length: int, key_length: int, **more: Any) -> torch.Tensor:
        if self._known is None or self._known.shape[2] == query_length:
            self._known = compute(query_length, key_length, **more)
        return self._known[:, :, :query_length, :key_length]

    def _region(self, ids: torch.Tensor, mask: torch.Tensor) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            compute = self._attention.compute_bias
            self._attention.compute_bias = lambda *lengths, **more: self._bias(compute, *lengths, **more)
            try:
                return self._forward(ids, mask)
            finally:
                del self._attention.compute_bias

        return run


class BiasOfAnotherLength(BiasOfAnotherGraph):
    """The relative positions are those of 64 tokens, whatever the bucket: what lies beyond has none."""

    def _bias(self, compute: Callable[..., torch.Tensor], query_length: int, key_length: int, **more: Any) -> torch.Tensor:
        short = compute(min(64, query_length), min(64, key_length), **more)
        return torch.nn.functional.pad(short, (0, key_length - short.shape[3], 0, query_length - short.shape[2]))


class SharedRunner(GraphRunner):
    """Two requests at a time in the same memory."""

    def _alone(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return nullcontext()


FAULTS = (
    MissingClone, StaleMask, StaleTail, StaleInputs, ScalarOfTheMask, ScalarOfTheLength, BiasOfAnotherGraph, BiasOfAnotherLength,
    SharedRunner,
)  # fmt: skip
