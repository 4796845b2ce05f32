"""What ``torch._scaled_mm`` refuses on a GPU, asked of torch itself without one: on a CPU the same product would run."""

from __future__ import annotations

from functools import lru_cache

import torch

from coatcheck.domain.errors import GpuUnfit
from coatcheck.gpu.fp8.layout import ALIGNED

ROWS = ALIGNED
"""Of the activations that it is asked with: they are padded to a multiple of this."""


def check(name: str, weight: torch.Tensor, scales: torch.Tensor) -> None:
    """A layer's E4M3 weight ``(channels, inputs)`` and scales ``(1, channels)``, as they would lie on the GPU.

    Raises GpuRefused, naming the layer, for what either of its products (by rows to BF16, plain to float32) would be refused for.
    """
    # torch takes these for other kinds of scaling, or for products of other formats, and refuses none of them.
    if weight.dtype != torch.float8_e4m3fn or scales.dtype != torch.float32:
        raise GpuUnfit(f"The layer {name!r} has weights in {weight.dtype} and scales in {scales.dtype}, not E4M3 and float32.")
    if weight.dim() != 2 or scales.shape != (1, weight.shape[0]):
        raise GpuUnfit(f"The layer {name!r} has scales {tuple(scales.shape)} for weights {tuple(weight.shape)}.")
    refused = _refusal(tuple(weight.shape), tuple(weight.stride()), tuple(scales.stride()))
    if refused is not None:
        raise GpuUnfit(f"The layer {name!r} cannot be multiplied in FP8 on a GPU: {refused}.")


@lru_cache(maxsize=256)
def _refusal(shape: tuple[int, int], strides: tuple[int, int], scale_strides: tuple[int, int]) -> str | None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    channels, inputs = shape
    with FakeTensorMode():

        def on_gpu(shape: tuple[int, int], strides: tuple[int, int], kind: torch.dtype) -> torch.Tensor:
            return torch.empty_strided(shape, strides, dtype=kind, device="cuda")

        activations = on_gpu((ROWS, inputs), (inputs, 1), torch.float8_e4m3fn)
        weight = on_gpu(shape, strides, torch.float8_e4m3fn).t()
        row_scales, scales = on_gpu((ROWS, 1), (1, 1), torch.float32), on_gpu((1, channels), scale_strides, torch.float32)
        unit = torch.empty((), dtype=torch.float32, device="cuda")
        try:
            torch._scaled_mm(activations, weight, row_scales, scales, out_dtype=torch.bfloat16, use_fast_accum=False)
            torch._scaled_mm(activations, weight, unit, unit, out_dtype=torch.float32, use_fast_accum=False)
        except RuntimeError as error:
            return str(error).partition("\n")[0].rstrip(".")
    return None
