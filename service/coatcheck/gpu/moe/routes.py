"""Routes of tokens to experts, made safe before a kernel indexes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.domain.errors import GpuRefused

if TYPE_CHECKING:
    from torch import Tensor


class Routes:
    """The routes of one layer. An id that is no expert's goes to expert 0 with weight 0; the others are left as they are.

    A negative id is padding. One above the range is made just as harmless, and counted: outside padding it is a fault upstream.
    """

    def __init__(self, experts: int, device: str) -> None:
        import torch

        if experts < 1:
            raise GpuRefused(f"A layer of {experts} experts routes to none.")
        self._experts = experts
        self._above = torch.zeros((), dtype=torch.int64, device=device)

    def safe(self, ids: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Both in their own types and shapes. Waits for nothing: the count stays on the device."""
        import torch

        if ids.shape != weights.shape:
            raise GpuRefused(f"Routes of the shape {tuple(ids.shape)} with weights of {tuple(weights.shape)}.")
        if ids.is_floating_point() or ids.dtype == torch.bool:
            raise GpuRefused(f"Experts are named by integers, not by {ids.dtype}.")
        above = ids >= self._experts
        valid = (ids >= 0) & ~above
        self._above += above.sum()
        return torch.where(valid, ids, 0), torch.where(valid, weights, 0)

    def above(self) -> int:
        """How many ids lay above the range so far. Waits for the device."""
        return int(self._above.item())
