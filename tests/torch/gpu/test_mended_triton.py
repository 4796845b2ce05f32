"""The mended interpreter against torch: every rounding that a kernel of ours rests on."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton")
import triton.language as tl

from tests.torch.gpu import kernels


def _hard_values() -> torch.Tensor:
    """Normals, subnormals, halves between two neighbours, and what is too large."""
    generator = torch.Generator().manual_seed(3)
    fp8 = torch.arange(0, 127, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    halves = (fp8[1:] + fp8[:-1]) / 2
    normals = torch.randn(60_000, generator=generator) * 50
    small = torch.randn(2_000, generator=generator) * 2.0**-8
    edges = torch.tensor([0.0, -0.0, 447.9, 448.0, 464.0, 465.0, 1e9, 2.0**-10, 2.0**-9, 3e-39])
    positive = torch.cat([fp8, halves, halves * (1 + 2**-20), halves * (1 - 2**-20), normals, small, edges])
    return torch.cat([positive, -positive])[: 1 << 17]


@pytest.mark.parametrize(
    ("kind", "code"), [(torch.float8_e4m3fn, tl.float8e4nv), (torch.bfloat16, tl.bfloat16), (torch.float16, tl.float16)], ids=str
)
def test_float32_is_rounded_to_the_nearest_ties_to_even_and_saturates_in_float8(
    kernel_device: str, kind: torch.dtype, code: Any
) -> None:
    values = torch.nn.functional.pad(_hard_values(), (0, (1 << 17) - len(_hard_values()))).to(kernel_device)
    if kind == torch.float16:
        values = values.clamp(-65504, 65504)  # beyond, it is the infinite that a kernel of ours never makes
    found = torch.empty(values.shape, dtype=kind, device=kernel_device)

    kernels.cast[(1,)](values, found, SIZE=1 << 17, TYPE=code)

    largest = torch.finfo(kind).max
    rounded = values.clamp(-largest, largest).to(kind) if kind == torch.float8_e4m3fn else values.to(kind)
    integers = torch.uint8 if kind == torch.float8_e4m3fn else torch.int16
    assert torch.equal(found.view(integers), rounded.view(integers))


def test_every_float8_is_widened_exactly_and_nan_stays_nan(kernel_device: str) -> None:
    every = torch.arange(256, dtype=torch.int16).to(torch.uint8).view(torch.float8_e4m3fn).to(kernel_device)
    found = torch.empty(256, device=kernel_device)

    kernels.cast[(1,)](every, found, SIZE=256, TYPE=tl.float32)

    assert torch.equal(found.isnan(), every.float().isnan())
    assert torch.equal(found.nan_to_num(), every.float().nan_to_num())


def test_a_product_of_bfloat16_is_that_of_its_values(kernel_device: str) -> None:
    generator = torch.Generator().manual_seed(5)
    a, b = (torch.randn(16, 16, generator=generator).bfloat16().to(kernel_device) for _ in range(2))
    found = torch.empty(16, 16, device=kernel_device)

    kernels.product[(1,)](a, b, found, SIZE=16)

    assert torch.allclose(found, a.float() @ b.float(), atol=1e-5)
