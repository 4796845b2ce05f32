"""A linear layer in W8A8: activations quantised by token as they come, an FP8 product, and BF16 out."""

from __future__ import annotations

from typing import Literal

import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.fp8 import contract
from coatcheck.gpu.fp8.layout import ALIGNED
from coatcheck.gpu.kernels.backends import Backend, by_device, module_of

Gemm = Literal["scale-out", "row-wise"]
"""``scale-out``: a product to float32, which a kernel scales to BF16; ``row-wise``: one call that takes the scales along."""


class Fp8Linear(torch.nn.Module):  # type: ignore[misc]  # torch is looked at by nobody where mypy runs
    """In the place of a ``torch.nn.Linear`` without bias: ``(..., inputs)`` in BF16 to ``(..., channels)`` in BF16.

    Nothing here waits for the device or depends on what the tensors hold, so that a CUDA graph can record it.
    """

    weight = None
    """None on purpose: T5's feed-forward layer casts its activations to its weight's type: here to E4M3, without a scale."""

    def __init__(
        self, name: str, quantised: torch.Tensor, scales: torch.Tensor, *, backend: Backend | None = None, gemm: Gemm = "scale-out"
    ) -> None:
        """E4M3 ``(channels, inputs)`` and float32 ``(1, channels)``. Raises GpuRefused for what a GPU would refuse, by ``name``."""
        super().__init__()
        contract.check(name, quantised, scales)
        self.name = name
        self.backend: Backend = backend or by_device(quantised.device.type)
        self.gemm: Gemm = gemm
        self._runs_on = module_of(self.backend, __package__)
        self.register_buffer("quantised", quantised)
        self.register_buffer("scale", scales)
        self.register_buffer("unit", torch.ones((), dtype=torch.float32, device=quantised.device))

    @property
    def in_features(self) -> int:
        return int(self.quantised.shape[1])

    @property
    def out_features(self) -> int:
        return int(self.quantised.shape[0])

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        self._check(values)
        flat = values.reshape(-1, self.in_features).contiguous()
        rows = len(flat)
        quantised, row_scales = self._runs_on.quantise(flat, -(-rows // ALIGNED) * ALIGNED)
        if self.gemm == "row-wise":
            out = torch._scaled_mm(
                quantised, self.quantised.t(), row_scales, self.scale, out_dtype=torch.bfloat16, use_fast_accum=False
            )[:rows]
        else:
            out = self._runs_on.scale_out(self._sums(quantised), row_scales, self.scale, rows)
        return out.reshape(*values.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, backend={self.backend}, gemm={self.gemm}"

    def _sums(self, quantised: torch.Tensor) -> torch.Tensor:
        """The product in float32, its scales left out."""
        if quantised.device.type == "cuda":
            return torch._scaled_mm(
                quantised, self.quantised.t(), self.unit, self.unit, out_dtype=torch.float32, use_fast_accum=False
            )
        # On a CPU torch's own product of this kind takes hundreds of times as long (measured), and gives the same.
        return quantised.float() @ self.quantised.float().t()

    def _check(self, values: torch.Tensor) -> None:
        if values.dtype != torch.bfloat16 or values.shape[-1] != self.in_features:
            raise GpuRefused(
                f"The layer {self.name!r} takes (..., {self.in_features}) in BF16, not {tuple(values.shape)} in {values.dtype}."
            )
        if self.quantised.dtype != torch.float8_e4m3fn or self.scale.dtype != torch.float32:
            raise GpuRefused(f"The layer {self.name!r} was converted to {self.quantised.dtype}: load it again, it cannot be.")
