"""Launches the kernels with the block sizes that the shapes ask for; in the place of ``reference.py``, with the same bytes."""

from __future__ import annotations

import torch

from coatcheck.gpu.fp8.layout import E4M3_MAX, SMALLEST_SCALE

COLUMNS = 1024
"""Sums that a program scales out."""


def quantise(values: torch.Tensor, rows: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """As ``reference.quantise``. The elements of a row lie next to one another."""
    from coatcheck.gpu.fp8 import kernels

    given, columns = values.shape
    made = max(given, rows or 0)
    quantised = torch.empty((made, columns), dtype=torch.float8_e4m3fn, device=values.device)
    scales = torch.empty((made, 1), dtype=torch.float32, device=values.device)
    if made:
        with torch.cuda.device_of(values):  # triton launches on the current device, whichever the tensors lie on
            kernels.quantise_kernel[(made,)](
                values, quantised, scales, given, columns, values.stride(0), quantised.stride(0),
                **quantise_constants(columns),
                num_warps=quantise_warps(columns),
            )  # fmt: skip
    return quantised, scales


def scale_out(sums: torch.Tensor, row_scales: torch.Tensor, channel_scales: torch.Tensor, rows: int) -> torch.Tensor:
    """As ``reference.scale_out``."""
    from coatcheck.gpu.fp8 import kernels

    columns = sums.shape[1]
    out = torch.empty((rows, columns), dtype=torch.bfloat16, device=sums.device)
    if rows:
        with torch.cuda.device_of(sums):
            kernels.scale_out_kernel[(rows, -(-columns // COLUMNS))](
                sums, row_scales, channel_scales, out, columns, sums.stride(0), out.stride(0), BLOCK=COLUMNS, num_warps=4
            )
    return out


def quantise_constants(columns: int) -> dict[str, float | int]:
    """What the kernel is compiled for."""
    return {"LARGEST": E4M3_MAX, "SMALLEST_SCALE": SMALLEST_SCALE, "BLOCK": 1 << (columns - 1).bit_length()}


def quantise_warps(columns: int) -> int:
    """As many that a thread holds at most 32 elements, 4 at least."""
    return min(16, max(4, (1 << (columns - 1).bit_length()) // 1024))
