"""The packed cache behind a front that checks: what would be written wrongly, twice, or where it cannot be seen is refused.

The checks wait for the device, so that this is the door for tests, tools and bring-up. A serving path that has proven its
callers launches the kernels itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from coatcheck.domain.errors import GpuRefused, GpuUnsupported
from coatcheck.gpu.kernels.backends import Backend, by_device, module_of
from coatcheck.gpu.nvfp4 import codec
from coatcheck.gpu.nvfp4.layout import VectorLayout, checked_global_scale

NO_SLOT = -1
"""Stands for a padded token or an unused place of a selection: nothing is written, nothing is read."""

_MOST_SLOTS = 2**31 - 1


class PackedCache:
    """Keys and values of one layer in NVFP4: ``blocks`` pages of ``page_size`` tokens with ``heads`` vectors each.

    ``pages`` are the bytes, ``(blocks, 2, page_size, heads, vector)``. The global scales, of keys and of values, stay what they
    are for the cache's life: another one would give the bytes that are there another meaning. One thread at a time.
    """

    def __init__(
        self,
        blocks: int,
        page_size: int = 16,
        heads: int = 2,
        head_size: int = 256,
        device: str | torch.device = "cuda",
        *,
        global_scales: tuple[float, float] = (1.0, 1.0),
        backend: Backend | None = None,
        is_capturing: Callable[[], bool] | None = None,
    ) -> None:
        """``backend`` is triton's on a GPU and torch's elsewhere; ``is_capturing`` says whether a CUDA graph records just now."""
        if min(blocks, page_size, heads) < 1:
            raise GpuRefused(f"A cache of {blocks} blocks of {page_size} tokens with {heads} heads holds nothing.")
        if blocks * page_size > _MOST_SLOTS:
            raise GpuRefused(f"A cache of {blocks * page_size:,} slots is beyond the {_MOST_SLOTS:,} that the kernels count to.")
        self.layout = VectorLayout(head_size)
        self.device = _usable(torch.device(device))
        self.backend: Backend = backend or by_device(self.device.type)
        self.global_scales = (checked_global_scale(global_scales[0]), checked_global_scale(global_scales[1]))
        self._is_capturing = is_capturing or (torch.cuda.is_current_stream_capturing if self.device.type == "cuda" else _never)
        self._runs_on = module_of(self.backend, __package__)
        self.pages = torch.zeros((blocks, 2, page_size, heads, self.layout.size_bytes), dtype=torch.uint8, device=self.device)

    @property
    def slots(self) -> int:
        return int(self.pages.shape[0] * self.pages.shape[2])

    @property
    def heads(self) -> int:
        return int(self.pages.shape[3])

    @property
    def bytes_per_token(self) -> int:
        return 2 * self.heads * self.layout.size_bytes

    def write(self, keys: torch.Tensor, values: torch.Tensor, slots: torch.Tensor) -> None:
        """Packs ``(tokens, heads, head_size)`` BF16 keys and values into ``slots`` (tokens), whole or not at all.

        Negative slots are padding, whatever their tokens hold. Raises GpuRefused for a slot beyond the cache, one that is named
        twice, NaN or infinity, other shapes, types or devices, and while a CUDA graph is captured.
        """
        self._refuse_capture("write")
        self._check_slots(slots, 1)
        for name, given in (("keys", keys), ("values", values)):
            self._check_tensor(name, given, torch.bfloat16, (slots.shape[0], self.heads, self.layout.head_size))
        valid = slots >= 0
        if bool((torch.bincount(slots[valid].long(), minlength=1) > 1).any()):
            raise GpuRefused("A slot is named twice in one write: which token it would hold is left to chance.")
        for name, given in (("keys", keys), ("values", values)):
            if not bool(torch.isfinite(given[valid]).all()):
                raise GpuRefused(f"The {name} hold NaN or infinity.")
        self._runs_on.write(self.pages, _dense(keys), _dense(values), slots.contiguous(), self.global_scales)

    def read(
        self,
        queries: torch.Tensor,
        selected: torch.Tensor,
        softmax_scale: float | None = None,
        out_type: torch.dtype = torch.bfloat16,
    ) -> torch.Tensor:
        """Attention of BF16 ``queries`` (rows, query heads, head_size) over each row's and KV head's ``selected`` slots.

        ``selected`` is ``(rows, heads, count)``; negative places are empty, and a row without any slot gives zeros. The scale is
        1 / sqrt(head_size) where none is given. Raises GpuRefused as ``write`` does; a slot may be named twice, and counts so.
        """
        self._refuse_capture("read")
        if queries.dim() != 3 or queries.shape[1] == 0 or queries.shape[1] % self.heads:
            raise GpuRefused(f"Queries {tuple(queries.shape)} are not (rows, a multiple of {self.heads} heads, head size).")
        self._check_tensor("queries", queries, torch.bfloat16, (queries.shape[0], queries.shape[1], self.layout.head_size))
        self._check_slots(selected, 3)
        if selected.shape[:2] != (queries.shape[0], self.heads):
            raise GpuRefused(f"Selected slots {tuple(selected.shape)} are not ({queries.shape[0]}, {self.heads}, count).")
        if not bool(torch.isfinite(queries).all()):
            raise GpuRefused("The queries hold NaN or infinity.")
        if not out_type.is_floating_point or out_type.itemsize < 2:
            raise GpuRefused(f"Attention cannot be given in {out_type}.")
        scale = 1 / math.sqrt(self.layout.head_size) if softmax_scale is None else softmax_scale
        if not math.isfinite(scale):
            raise GpuRefused(f"A softmax scale of {scale} is no number to multiply with.")
        out = torch.empty(queries.shape, dtype=out_type, device=self.device)
        self._runs_on.read(self.pages, _dense(queries), selected.contiguous(), self.global_scales, scale, out)
        return out

    def decoded(self, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and the values of these slots in float32, ``(tokens, heads, head_size)`` each."""
        self._check_slots(slots, 1)
        if bool((slots < 0).any()):
            raise GpuRefused("A negative slot holds nothing to decode.")
        page_size = self.pages.shape[2]
        block, row = slots // page_size, slots % page_size
        keys, values = (
            codec.decode(self.pages[block, kind, row], self.layout.head_size, self.global_scales[kind]) for kind in (0, 1)
        )
        return keys, values

    def _check_tensor(self, name: str, given: torch.Tensor, kind: torch.dtype, shape: tuple[int, ...]) -> None:
        if given.dtype != kind or given.shape != shape:
            raise GpuRefused(f"The {name} are {tuple(given.shape)} of {given.dtype}, not {shape} of {kind}.")
        if given.device != self.pages.device:
            raise GpuRefused(f"The {name} lie on {given.device}, the cache on {self.pages.device}.")

    def _check_slots(self, slots: torch.Tensor, dimensions: int) -> None:
        if slots.dim() != dimensions or slots.dtype not in (torch.int32, torch.int64):
            raise GpuRefused(f"Slots are {dimensions}-dimensional int32 or int64, not {tuple(slots.shape)} of {slots.dtype}.")
        if slots.device != self.pages.device:
            raise GpuRefused(f"The slots lie on {slots.device}, the cache on {self.pages.device}.")
        if bool((slots >= self.slots).any()):
            raise GpuRefused(f"Slot {int(slots.max())} is beyond the cache, which has {self.slots}.")

    def _refuse_capture(self, what: str) -> None:
        if self._is_capturing():
            raise GpuRefused(f"A checked {what} waits for the device, which a CUDA graph cannot record: launch the kernel itself.")


def _never() -> bool:
    return False


def _usable(device: torch.device) -> torch.device:
    if device.type == "cuda" and not torch.cuda.is_available():
        raise GpuUnsupported("There is no CUDA device on this machine; device='cpu' runs the reference.")
    return device


def _dense(given: torch.Tensor) -> torch.Tensor:
    """With its last dimension as it lies in memory: the kernels step through that one by one."""
    return given if given.stride(-1) == 1 else given.contiguous()
