"""The reference codec: exhaustive over codes and scales, against an independent codec, against tables, and what it refuses."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.nvfp4.codec import decode, decode_e2m1, encode, encode_e2m1
from coatcheck.gpu.nvfp4.layout import VectorLayout
from tests.torch.gpu import table_codec as table

CODES = torch.arange(16, dtype=torch.uint8)
PACKED_CODES = CODES[0::2] | (CODES[1::2] << 4)
POSITIVE_SCALES = range(1, 0x7F)


def vector(scale: int) -> torch.Tensor:
    """A vector of one group that holds all 16 codes."""
    return torch.cat([PACKED_CODES, torch.tensor([scale], dtype=torch.uint8)])


def of_one_group(packed: torch.Tensor) -> tuple[list[int], int]:
    codes = torch.stack([packed[:8] & 15, packed[:8] >> 4], dim=-1).flatten()
    return codes.tolist(), int(packed[8])


@pytest.mark.parametrize("global_scale", [1.0, 0.37, 8.96])
def test_all_16_codes_under_all_256_scales_decode_to_their_values(global_scale: float) -> None:
    every = torch.stack([vector(scale) for scale in range(256)])

    found = decode(every, 16, global_scale)

    expected = torch.tensor([[table.value(code, scale, global_scale) for code in range(16)] for scale in range(256)])
    assert torch.equal(found.isnan(), expected.isnan())
    assert found.isnan().all(-1).nonzero().flatten().tolist() == [0x7F, 0xFF]
    assert torch.equal(found.nan_to_num(), expected.nan_to_num())


def test_what_was_decoded_from_any_scale_is_encoded_to_the_same_bytes() -> None:
    every = torch.stack([vector(scale) for scale in POSITIVE_SCALES])

    again = encode(decode(every, 16))

    assert torch.equal(again, every)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0.0, 0), (0.25, 0), (0.2500001, 1), (0.75, 2), (0.7499999, 1), (1.25, 2), (1.2500001, 3), (1.75, 4), (1.7499999, 3),
        (2.5, 4), (2.5000002, 5), (3.5, 6), (3.4999998, 5), (5.0, 6), (5.0000005, 7), (6.0, 7), (6.5, 7), (1e30, 7),
        (-0.0, 8), (-0.1, 8), (-0.75, 10), (-5.0, 14), (-1e30, 15),
    ],
)  # fmt: skip
def test_a_value_gets_the_nearest_code_and_a_tie_the_even_one(value: float, code: int) -> None:
    found = encode_e2m1(torch.tensor([value]))

    assert found.tolist() == [code]
    assert abs(float(decode_e2m1(found)) - max(-6.0, min(6.0, value))) <= 1.0


@settings(max_examples=120, deadline=None)
@given(
    exponent=st.integers(-40, 13),
    global_scale=st.sampled_from([1.0, 0.37, 8.96]),
    mantissas=st.lists(st.integers(-255, 255), min_size=16, max_size=16),
)
def test_any_group_is_encoded_as_the_tables_say(exponent: int, global_scale: float, mantissas: list[int]) -> None:
    values = [math.ldexp(mantissa, exponent - 8) for mantissa in mantissas]

    packed = encode(torch.tensor(values).bfloat16(), global_scale)

    assert of_one_group(packed) == table.group(values, global_scale)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("spread", [2.0**-20, 0.004, 0.05, 1.0, 30.0, 5000.0])
def test_an_independent_codec_writes_the_same_bytes_at_global_scale_1_but_for_groups_of_zeros(
    kind: torch.dtype, spread: float
) -> None:
    """torchao's scales start at 2**-6, ours at 2**-9: with its floor the bytes are the same, without where the floor is not met."""
    oracle = pytest.importorskip("torchao.prototype.mx_formats.nvfp4_tensor")
    generator = torch.Generator().manual_seed(11)
    values = (torch.randn(256, 256, generator=generator) * spread).to(kind)
    values[7, 32:48] = 0
    their_scales, their_codes = oracle.nvfp4_quantize(values)
    theirs = torch.cat([their_codes, their_scales.view(torch.uint8).reshape(256, 16)], dim=-1)

    ours, with_their_floor = encode(values), encode(values, scale_floor=2.0**-6)

    zeros = theirs[7, 128 + 2].item(), ours[7, 128 + 2].item()
    assert zeros == (0x08, 0x00)  # they keep 2**-6 for a group of zeros, we keep 0: both decode to zeros
    theirs[7, 128 + 2] = 0
    assert torch.equal(with_their_floor, theirs)
    above = ours[:, 128:] > 0x08
    assert torch.equal(ours[:, 128:][above], theirs[:, 128:][above])
    assert torch.equal(ours[:, :128].unflatten(1, (16, 8))[above], theirs[:, :128].unflatten(1, (16, 8))[above])


def test_small_groups_lose_less_than_under_the_floor_of_normal_scales() -> None:
    values = torch.randn(64, 256, generator=torch.Generator().manual_seed(2)) * 0.01

    error = (decode(encode(values), 256) - values).square().mean()
    with_a_floor = (decode(encode(values, scale_floor=2.0**-6), 256) - values).square().mean()

    assert error < with_a_floor / 3


def test_a_group_of_zeros_has_no_scale_and_the_smallest_other_group_has_one() -> None:
    smallest = torch.zeros(32)
    smallest[20] = -1e-38

    packed = encode(smallest)

    assert packed[16:].tolist() == [0, 1]
    assert not decode(packed, 32).any()


def test_what_is_too_large_becomes_the_largest() -> None:
    values = torch.tensor([3e38, -3e38, *[0.0] * 14]).bfloat16()

    assert decode(encode(values), 16)[:2].tolist() == [2688.0, -2688.0]
    assert decode(encode(values, 0.5), 16, 0.5)[:2].tolist() == [5376.0, -5376.0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_refused(value: float) -> None:
    values = torch.ones(2, 32)
    values[1, 31] = value

    with pytest.raises(GpuRefused, match="NaN or infinity"):
        encode(values)


@pytest.mark.parametrize("size", [0, 8, 24, 255])
def test_a_head_that_is_not_made_of_groups_is_refused(size: int) -> None:
    with pytest.raises(GpuRefused, match="multiple of 16"):
        encode(torch.ones(3, size))


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e-30, 1e30])
def test_a_global_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(GpuRefused, match="global scale"):
        encode(torch.ones(16), scale)
    with pytest.raises(GpuRefused, match="global scale"):
        decode(vector(1), 16, scale)


@pytest.mark.parametrize("given_bytes", [torch.zeros(8, dtype=torch.uint8), torch.zeros(9)])
def test_bytes_of_another_layout_are_refused(given_bytes: torch.Tensor) -> None:
    with pytest.raises(GpuRefused, match="9 bytes"):
        decode(given_bytes, 16)


def test_a_head_of_256_takes_144_bytes() -> None:
    assert VectorLayout(256).size_bytes == 144
    assert encode(torch.zeros(5, 2, 256)).shape == (5, 2, 144)
