"""The NVFP4 kernels against their references: bytes equal, attention within its bound."""

from __future__ import annotations

import pytest
import torch

from coatcheck.gpu.nvfp4 import reference
from coatcheck.gpu.nvfp4.cache import PackedCache

pytest.importorskip("triton")


def random(*shape: int, seed: int, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).bfloat16()


@pytest.mark.parametrize("global_scale", [1.0, 0.37, 8.96])
def test_the_writer_s_bytes_are_the_reference_s(kernel_device: str, global_scale: float) -> None:
    slots = torch.tensor([5, -1, 0, 17, 63, 30, 1])
    spreads = torch.tensor([1.0, 1.0, 0.01, 1.0, 900.0, 0.01, 900.0]).reshape(-1, 1, 1)
    keys, values = ((random(7, 2, 256, seed=seed) * spreads).bfloat16() for seed in (1, 2))
    values[3] = 0
    scales = (global_scale, 1 / global_scale)
    written = PackedCache(4, device=kernel_device, global_scales=scales, backend="triton")
    expected = PackedCache(4, device="cpu", global_scales=scales)

    written.write(keys.to(kernel_device), values.to(kernel_device), slots.to(kernel_device))
    expected.write(keys, values, slots)

    assert torch.equal(written.pages.cpu(), expected.pages)
    assert written.pages.any(-1).sum() == 6 * 2 * 2 - 2  # six tokens, two vectors each of two heads, one of them of zeros


@pytest.mark.parametrize("global_scale", [1.0, 0.37, 8.96])
def test_the_reader_is_dense_attention_over_decoded_values(kernel_device: str, global_scale: float) -> None:
    tokens = 70
    scales = (global_scale, 1 / global_scale)
    filled = PackedCache(8, device=kernel_device, global_scales=scales, backend="torch")
    cache = PackedCache(8, device=kernel_device, global_scales=scales, backend="triton")
    keys, values = (random(tokens, 2, 256, seed=seed).to(kernel_device) for seed in (3, 4))
    shuffled = torch.randperm(cache.slots, generator=torch.Generator().manual_seed(5))[:tokens].to(kernel_device)
    filled.write(keys, values, shuffled)
    cache.pages.copy_(filled.pages)
    queries = random(3, 24, 256, seed=6).to(kernel_device)
    selected = shuffled.repeat(3, 2, 1)
    selected[1, 0, 7:] = -1
    selected[2, 1, :] = -1

    found = cache.read(queries, selected, out_type=torch.float32)

    expected = torch.empty_like(found)
    reference.read(cache.pages, queries, selected, cache.global_scales, 1 / 16, expected)
    assert (found - expected).abs().max() <= 0.004
    assert torch.cosine_similarity(found.flatten(), expected.flatten(), dim=0) >= 0.99999
    assert not found[2, 12:].any()
