"""The FP8 kernels against their reference: activations quantised to the same bytes, sums scaled out to the same BF16."""

from __future__ import annotations

import pytest
import torch

from coatcheck.gpu.fp8 import reference

pytest.importorskip("triton")
from coatcheck.gpu.fp8 import launch


def random(*shape: int, seed: int, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).bfloat16()


def same_bytes(found: tuple[torch.Tensor, torch.Tensor], expected: tuple[torch.Tensor, torch.Tensor]) -> bool:
    codes = torch.equal(found[0].cpu().view(torch.uint8), expected[0].view(torch.uint8))
    return bool(codes and torch.equal(found[1].cpu(), expected[1]))


@pytest.mark.parametrize("columns", [16, 48, 2_048])
@pytest.mark.parametrize("spread", [1.0, 1e-3, 3e4, 1e37, 1e-38])
def test_activations_are_quantised_to_the_reference_s_bytes(kernel_device: str, columns: int, spread: float) -> None:
    values = random(5, columns, seed=1, scale=spread)
    values[1] = 0
    values[2, 3] = -torch.finfo(torch.bfloat16).max

    found = launch.quantise(values.to(kernel_device), 16)

    assert same_bytes(found, reference.quantise(values, 16))
    assert not found[0][5:].view(torch.uint8).any()


def test_every_number_of_bf16_is_quantised_alike_beside_its_neighbours(kernel_device: str) -> None:
    """All finite numbers of BF16, 128 neighbours and their negatives a row."""
    every = torch.arange(0x7F80, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).reshape(-1, 128)
    rows = torch.cat([every, -every], dim=1)

    assert same_bytes(launch.quantise(rows.to(kernel_device)), reference.quantise(rows))


def test_rows_that_do_not_lie_next_to_one_another_are_read_where_they_are(kernel_device: str) -> None:
    wide = random(4, 96, seed=2)

    assert same_bytes(launch.quantise(wide.to(kernel_device)[::2, 16:64], 16), reference.quantise(wide[::2, 16:64], 16))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_what_is_no_number_stays_none_and_changes_no_other_row(kernel_device: str) -> None:
    values = random(3, 32, seed=3)
    untouched = reference.quantise(values)
    values[0, 4], values[1, 5] = float("nan"), float("inf")
    expected, expected_scales = reference.quantise(values)

    codes, scales = launch.quantise(values.to(kernel_device))

    assert codes.float().isnan().nonzero().tolist() == [[0, 4], [1, 5]]
    assert torch.equal(scales.cpu(), expected_scales)
    assert (scales[0].isfinite(), scales[1].isinf()) == (True, True)
    assert torch.equal(codes.cpu().float().nan_to_num(nan=999), expected.float().nan_to_num(nan=999))
    assert same_bytes((codes[2:], scales[2:]), (untouched[0][2:], untouched[1][2:]))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("columns", [16, 1_100])
def test_sums_are_scaled_out_to_the_reference_s_bits(kernel_device: str, rows: int, columns: int) -> None:
    generator = torch.Generator().manual_seed(4)
    sums = torch.randn(16, columns, generator=generator) * 1e5
    sums[0, :3] = torch.tensor([0.0, -0.0, 3e38])
    row_scales = torch.rand(16, 1, generator=generator) * 1e-2
    channel_scales = torch.rand(1, columns, generator=generator) * 1e-3
    # One that tells the order of the two products: the scales' own is nothing.
    sums[0, 3], row_scales[0], channel_scales[0, 3] = 2.0**100, 2.0**-100, 2.0**-60

    found = launch.scale_out(sums.to(kernel_device), row_scales.to(kernel_device), channel_scales.to(kernel_device), rows)

    expected = reference.scale_out(sums, row_scales, channel_scales, rows)
    assert found.shape == (rows, columns)
    assert torch.equal(found.cpu().view(torch.int16), expected.view(torch.int16))
    assert expected[0, 3] == 2.0**-60
