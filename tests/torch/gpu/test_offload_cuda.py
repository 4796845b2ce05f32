"""Offload over real streams: as over the modelled ones, where there is a device; and a clear word where there is none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from coatcheck.domain.errors import GpuRefused, StageUnavailable
from coatcheck.gpu.offload import Job, Offload
from coatcheck.gpu.offload.cuda import CudaStream, CudaStreams, has_reached
from coatcheck.gpu.offload.job import Compute
from coatcheck.ops.progress import ProgressBoard, Stage
from tests.torch.gpu.conftest import NO_GPU

WIDTH = 16
on_a_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)]


def rows_of(inputs: Tensor, rows: Tensor) -> None:
    """Rows of a table that no two tokens share."""
    rows.copy_(inputs[:, None].float().sqrt() / torch.arange(1, WIDTH + 1))


@dataclass
class Bench:
    offload: Offload[Tensor]
    preparation: CudaStream
    model: CudaStream
    inputs: Tensor
    target: Tensor

    def launch(self, tokens: Tensor, limit_s: float = 60.0) -> tuple[Job[Tensor], Tensor]:
        """The pass, and what the model's forward found."""
        inputs, target = self.inputs[: len(tokens)], self.target[: len(tokens)]
        with torch.cuda.stream(self.preparation.stream):
            inputs.copy_(tokens)
        job = self.offload.submit(inputs, target, written_on=self.preparation, consumer=self.model, limit_s=limit_s)
        with torch.cuda.stream(self.model.stream):
            return job, target.clone()


@contextmanager
def running(depth: int, tokens: int, compute: Compute[Tensor] = rows_of) -> Iterator[Bench]:
    streams = CudaStreams()
    board = ProgressBoard([Stage("offload", True, 60)])
    offload = Offload(
        streams,
        lambda: streams.memory(tokens, (WIDTH,), inputs=torch.int64, rows=torch.float32),
        compute,
        board,
        depth=depth,
        scheduler_depth=depth,
    )
    offload.start()
    inputs = torch.zeros(tokens, dtype=torch.int64, device="cuda")
    target = torch.zeros((tokens, WIDTH), device="cuda")
    torch.cuda.synchronize()
    yield Bench(offload, streams.stream(), streams.stream(), inputs, target)
    offload.close(5.0)
    torch.cuda.synchronize()


class TestOnADevice:
    pytestmark = on_a_gpu

    def test_24_batches_of_8192_tokens_at_depth_8_are_bit_equal_to_the_synchronous_path(self) -> None:
        torch.manual_seed(1)
        batches = [torch.randint(0, 2**40, (8_192,)) for _ in range(24)]

        with running(8, 8_192) as bench:
            passes = [bench.launch(tokens) for tokens in batches]
            for job, _ in passes:
                bench.offload.result(job)
            torch.cuda.synchronize()

        for tokens, (_, read) in zip(batches, passes, strict=True):
            expected = torch.empty(8_192, WIDTH)
            rows_of(tokens, expected)
            assert torch.equal(read.cpu(), expected)

    def test_a_pass_that_is_late_lets_the_models_stream_through(self) -> None:
        opened = threading.Event()

        def compute(inputs: Tensor, rows: Tensor) -> None:
            opened.wait(30)
            rows_of(inputs, rows)

        with running(2, 8, compute) as bench:
            job, _ = bench.launch(torch.arange(8), limit_s=0.3)
            with pytest.raises(StageUnavailable):
                bench.offload.result(job)
            bench.model.stream.synchronize()
            opened.set()

    def test_a_wait_is_not_captured(self) -> None:
        streams = CudaStreams()
        stream, signal = streams.stream(), streams.signal()
        graph = torch.cuda.CUDAGraph()

        with pytest.raises(GpuRefused, match="captured"), torch.cuda.graph(graph, stream=stream.stream):
            streams.wait_signal(stream, signal, 1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a device is here")
def test_without_a_device_it_is_refused_in_words() -> None:
    with pytest.raises(GpuRefused, match="needs a CUDA device"):
        CudaStreams()


@pytest.mark.parametrize(
    ("word", "number", "reached"),
    [
        (0, 0, True),
        (0, 1, False),
        (5, 5, True),
        (6, 5, True),
        (4, 5, False),
        (2**32 - 1, 2**32, False),
        (0, 2**32, True),
        (3, 2**32 + 2, True),
    ],
)
def test_a_word_is_compared_as_the_device_does_it_also_where_it_wraps(word: int, number: int, reached: bool) -> None:
    assert has_reached(word, number) is reached
