"""What the kernels do, in plain torch: the oracle that they are held against, and what runs where there is no GPU.

A row is quantised as ``scale = max(|row|) / 448``, at least the smallest normal float32, and each element of it as
``e4m3(element * (1 / scale))``. Each step is rounded to float32, the last one to the nearest code, ties to even, saturating at 448.
NaN stays NaN, and infinity makes its row NaN in a product.
"""

from __future__ import annotations

import torch

from coatcheck.gpu.fp8.layout import E4M3_MAX, SMALLEST_SCALE


def quantise(values: torch.Tensor, rows: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Values ``(n, k)`` of any float type as E4M3 ``(rows, k)`` and their scales ``(rows, 1)`` in float32.

    ``rows`` is n where it is not given; rows beyond n are zeros.
    """
    wide = values.float()
    if rows is not None and rows > len(wide):
        wide = torch.nn.functional.pad(wide, (0, 0, 0, rows - len(wide)))
    # As a GPU's maximum: what is no number is not the largest one, and the other elements of its row keep their bytes.
    largest = wide.abs().nan_to_num(nan=0.0, posinf=torch.inf).amax(dim=1, keepdim=True)
    # A divisor on the device: torch multiplies by the reciprocal of a Python number there, which is rounded twice.
    scales = torch.div(largest, torch.full_like(largest, E4M3_MAX)).clamp(min=SMALLEST_SCALE)
    factors = torch.div(torch.ones_like(scales), scales)
    return (wide * factors).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn), scales


def scale_out(sums: torch.Tensor, row_scales: torch.Tensor, channel_scales: torch.Tensor, rows: int) -> torch.Tensor:
    """The first ``rows`` of the sums, which are float32, times their row's scale, then their channel's ``(1, n)``, in BF16."""
    return (sums[:rows] * row_scales[:rows] * channel_scales).to(torch.bfloat16)
