"""What the kernels do, in plain torch: the writer through the codec, the reader as dense attention over decoded vectors.

Both take the pages as ``kernels.py`` does, so that either stands in the other's place.
"""

from __future__ import annotations

import torch

from coatcheck.gpu.nvfp4 import codec
from coatcheck.gpu.nvfp4.layout import E4M3_SMALLEST


def write(
    pages: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    slots: torch.Tensor,
    global_scales: tuple[float, float],
    scale_floor: float = E4M3_SMALLEST,
) -> None:
    """Packs ``(tokens, heads, head_size)`` keys and values into their slots. What is no slot writes nothing."""
    page_size = pages.shape[2]
    valid = (slots >= 0) & (slots < pages.shape[0] * page_size)
    block, row = slots[valid] // page_size, slots[valid] % page_size
    for kind, vectors in enumerate((keys, values)):
        pages[block, kind, row] = codec.encode(vectors[valid], global_scales[kind], scale_floor=scale_floor)


def read(
    pages: torch.Tensor,
    queries: torch.Tensor,
    selected: torch.Tensor,
    global_scales: tuple[float, float],
    softmax_scale: float,
    out: torch.Tensor,
) -> None:
    """Attention of ``(rows, query_heads, head_size)`` queries over the slots ``(rows, kv_heads, count)`` selected for each.

    What is no slot is left out; a row without any gives zeros; a slot that is named twice counts twice. In float64.
    """
    heads, head_size = pages.shape[3], queries.shape[-1]
    keys, values = (gathered(pages, selected, kind, head_size, global_scales[kind]).double() for kind in (0, 1))
    grouped = queries.double().unflatten(1, (heads, -1))
    scores = torch.einsum("rhgd,rhnd->rhgn", grouped, keys) * softmax_scale
    valid = _valid(pages, selected).unsqueeze(2)
    weights = torch.softmax(scores.masked_fill(~valid, float("-inf")), dim=-1).nan_to_num(0.0)
    out.copy_(torch.einsum("rhgn,rhnd->rhgd", weights, values).flatten(1, 2))


def gathered(pages: torch.Tensor, selected: torch.Tensor, kind: int, head_size: int, global_scale: float) -> torch.Tensor:
    """Decoded keys (``kind`` 0) or values (1) ``(rows, kv_heads, count, head_size)``; zeros for what is no slot."""
    page_size, heads = pages.shape[2], pages.shape[3]
    valid = _valid(pages, selected)
    slots = torch.where(valid, selected, 0).long()
    head = torch.arange(heads, device=pages.device).reshape(1, heads, 1)
    vectors = codec.decode(pages[slots // page_size, kind, slots % page_size, head], head_size, global_scale)
    return torch.where(valid.unsqueeze(-1), vectors, 0.0)


def _valid(pages: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
    return (slots >= 0) & (slots < pages.shape[0] * pages.shape[2])
