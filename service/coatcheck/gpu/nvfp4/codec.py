"""The reference codec in plain torch, which the kernels are held against byte for byte.

Encoding, each step rounded to float32 and in this order: ``scale = e4m3(max(|group|) * global_scale / 6)``, saturating at 448;
``code = e2m1(value * (global_scale / scale))``, to the nearest, ties to the even code, saturating at 6. A group of zeros has the
scale 0; any other has at least 2**-9, since a scale that rounded to 0 would lose it whole. A code keeps its value's sign, that of
a zero too.

The global scale is the *encoding* one: decoding divides by it. FlashInfer's and torchao's are its reciprocal.
"""

from __future__ import annotations

import torch

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.nvfp4.layout import E2M1_MAGNITUDES, E2M1_MAX, E4M3_MAX, E4M3_SMALLEST, GROUP, VectorLayout, checked_global_scale

_UP_TO = (0.25, 1.25, 2.5, 5.0)
"""Halfway to the next magnitude, where the lower one's code is the even one: a tie stays below."""
_FROM = (0.75, 1.75, 3.5)
"""And where the upper one's is: a tie goes up."""


def encode(values: torch.Tensor, global_scale: float = 1.0, *, scale_floor: float = E4M3_SMALLEST) -> torch.Tensor:
    """Vectors ``(..., head_size)`` of any float type as ``(..., layout.size_bytes)`` bytes.

    ``scale_floor`` is the smallest scale of a group that is not all zero; other codecs take 2**-6, the smallest normal one.
    Raises GpuRefused on NaN, infinity, and a last dimension that is no multiple of 16.
    """
    layout = VectorLayout(values.shape[-1])
    if not bool(torch.isfinite(values).all()):
        raise GpuRefused("NaN or infinity cannot be packed: there is no code for it.")
    scale_of_all = _scalar(checked_global_scale(global_scale), values)
    groups = values.to(torch.float32).unflatten(-1, (layout.scale_bytes, GROUP))

    largest = groups.abs().amax(-1, keepdim=True)
    wanted = torch.div(largest * scale_of_all, _scalar(E2M1_MAX, values)).clamp(max=E4M3_MAX)
    wanted = torch.where(largest > 0, wanted.clamp(min=scale_floor), 0.0)
    scales = wanted.to(torch.float8_e4m3fn)
    rounded = scales.to(torch.float32)
    factors = torch.where(rounded > 0, torch.div(scale_of_all, rounded), 0.0)
    codes = encode_e2m1(groups * factors).flatten(-2)

    packed = codes[..., 0::2] | (codes[..., 1::2] << 4)
    return torch.cat([packed, scales.view(torch.uint8).flatten(-2)], dim=-1)


def decode(vectors: torch.Tensor, head_size: int, global_scale: float = 1.0) -> torch.Tensor:
    """Bytes ``(..., layout.size_bytes)`` as float32 ``(..., head_size)``. Any byte has a value; a scale of NaN gives NaN."""
    layout = VectorLayout(head_size)
    if vectors.dtype != torch.uint8 or vectors.shape[-1] != layout.size_bytes:
        raise GpuRefused(
            f"A vector of {head_size} elements is {layout.size_bytes} bytes, not {tuple(vectors.shape)} of {vectors.dtype}."
        )
    packed, scales = vectors.split([layout.packed_bytes, layout.scale_bytes], dim=-1)
    codes = torch.stack([packed & 0x0F, packed >> 4], dim=-1).flatten(-2)
    # Exact: three bits times four need seven.
    products = decode_e2m1(codes).unflatten(-1, (-1, GROUP)) * scales.contiguous().view(torch.float8_e4m3fn).float().unsqueeze(-1)
    return torch.div(products.flatten(-2), _scalar(checked_global_scale(global_scale), vectors))


def encode_e2m1(values: torch.Tensor) -> torch.Tensor:
    """The codes (0 to 15, a byte each) that are nearest."""
    size = values.abs()
    codes = torch.zeros_like(values, dtype=torch.uint8)
    for halfway in _UP_TO:
        codes += size > halfway
    for halfway in _FROM:
        codes += size >= halfway
    return codes | (torch.signbit(values).to(torch.uint8) << 3)


def decode_e2m1(codes: torch.Tensor) -> torch.Tensor:
    """The values of codes 0 to 15 in float32."""
    table = torch.tensor([*E2M1_MAGNITUDES, *(-size for size in E2M1_MAGNITUDES)], device=codes.device)
    return table[codes.long()]


def _scalar(value: float, like: torch.Tensor) -> torch.Tensor:
    """As a tensor: with a Python number torch may multiply by a reciprocal, which is not rounded as a division is."""
    return torch.tensor(value, dtype=torch.float32, device=like.device)
