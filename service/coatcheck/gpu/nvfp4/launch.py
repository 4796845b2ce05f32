"""Launches the kernels with the strides and the block sizes that a cache's shapes ask for. Checks nothing: ``cache.py`` does."""

from __future__ import annotations

import math

import torch

from coatcheck.gpu.nvfp4.layout import E4M3_SMALLEST, VectorLayout

POSITIONS = 16
"""Selected slots that the reader holds at a time. At 32 its registers ran over on sm_89 (measured on the compiled code)."""
WARPS = 4
STAGES = 1
"""Of the loop over positions, whose loads are gathered: with more than one, sm_100a had 8 bytes too few registers."""
_SMALLEST_DOT = 16
"""The least rows that a matrix instruction takes."""


def write(
    pages: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    slots: torch.Tensor,
    global_scales: tuple[float, float],
    scale_floor: float = E4M3_SMALLEST,
) -> None:
    """As ``reference.write``."""
    from coatcheck.gpu.nvfp4 import kernels

    tokens, heads, head_size = keys.shape
    if tokens == 0:
        return
    with torch.cuda.device_of(pages):  # triton launches on the current device, whichever the tensors lie on
        kernels.write_kernel[(tokens, heads)](
            keys, values, slots, pages, pages.shape[0] * pages.shape[2], pages.shape[2],
            *keys.stride()[:2], *values.stride()[:2], *pages.stride()[:4], *global_scales,
            **write_constants(head_size, scale_floor),
            num_warps=WARPS,
            num_stages=STAGES,
        )  # fmt: skip


def read(
    pages: torch.Tensor,
    queries: torch.Tensor,
    selected: torch.Tensor,
    global_scales: tuple[float, float],
    softmax_scale: float,
    out: torch.Tensor,
) -> None:
    """As ``reference.read``, with weights in float16 and sums in float32."""
    from coatcheck.gpu.nvfp4 import kernels

    rows, query_heads, head_size = queries.shape
    heads = pages.shape[3]
    if rows == 0:
        return
    with torch.cuda.device_of(pages):
        kernels.read_kernel[(rows, heads)](
            queries, selected, pages, out, pages.shape[0] * pages.shape[2], pages.shape[2], selected.shape[2], query_heads // heads,
            *queries.stride()[:2], *selected.stride()[:2], *out.stride()[:2], *pages.stride()[:4],
            softmax_scale * math.log2(math.e) / global_scales[0], global_scales[1],
            **read_constants(head_size, query_heads // heads),
            num_warps=WARPS,
            num_stages=STAGES,
        )  # fmt: skip


def write_constants(head_size: int, scale_floor: float = E4M3_SMALLEST) -> dict[str, float]:
    """What the writer is compiled for."""
    groups = VectorLayout(head_size).scale_bytes
    return {"GROUPS": groups, "GROUPS_PADDED": _power_of_two(groups), "SCALE_FLOOR": scale_floor}


def read_constants(head_size: int, heads_that_share: int) -> dict[str, int]:
    """What the reader is compiled for."""
    half = VectorLayout(head_size).packed_bytes
    return {
        "HALF": half,
        "HALF_PADDED": max(_SMALLEST_DOT, _power_of_two(half)),
        "HEADS_PADDED": max(_SMALLEST_DOT, _power_of_two(heads_that_share)),
        "POSITIONS": POSITIONS,
    }


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()
