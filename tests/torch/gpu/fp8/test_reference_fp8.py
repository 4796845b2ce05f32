"""The reference of FP8 quantisation against a search over all 256 codes, and at the edges of its scale."""

from __future__ import annotations

import torch

from coatcheck.gpu.fp8 import reference


def nearest_codes(scaled: torch.Tensor) -> torch.Tensor:
    """By distance to each finite value, ties to the even code, saturating: from the format's definition alone."""
    magnitudes = [(code & 7) * 2.0**-9 if code < 8 else (8 + (code & 7)) * 2.0 ** ((code >> 3) - 10) for code in range(127)]
    table = torch.tensor(magnitudes, dtype=torch.float64)
    distances = (scaled.double().abs().unsqueeze(-1) - table).abs()
    nearest = distances == distances.min(dim=-1, keepdim=True).values
    even_first = torch.where(torch.arange(127) % 2 == 0, 2, 1) * nearest
    codes = even_first.argmax(dim=-1)
    return (codes | (torch.signbit(scaled).long() << 7)).to(torch.uint8)


def test_each_element_becomes_the_nearest_value_of_e4m3_ties_to_even() -> None:
    generator = torch.Generator().manual_seed(1)
    # The largest of each row is 448, so that its scale is 1 and the ties between two neighbours are met exactly.
    spreads = 2.0 ** torch.arange(-14, 6).repeat(3).unsqueeze(1)
    values = torch.cat([torch.randn(60, 63, generator=generator) * spreads, torch.full((60, 1), 448.0)], 1)
    e4m3 = torch.arange(127, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    ties = ((e4m3[1:] + e4m3[:-1]) / 2).reshape(2, 63)
    values = torch.cat([values, torch.cat([ties, torch.full((2, 1), -448.0)], 1)])

    codes, scales = reference.quantise(values)

    assert torch.equal(scales, torch.ones(62, 1))
    assert torch.equal(codes.view(torch.uint8), nearest_codes(values))


def test_a_row_of_zeros_and_one_of_the_smallest_numbers_have_a_scale_that_divides_nothing_by_zero() -> None:
    rows = torch.zeros(3, 16, dtype=torch.bfloat16)
    rows[1, 2] = 2.0**-133  # the smallest of BF16
    rows[2, 3] = 448 * 2.0**-126

    codes, scales = reference.quantise(rows)

    assert scales.flatten().tolist() == [2.0**-126] * 3
    assert not codes[:2].float().isnan().any()
    assert codes[0].view(torch.uint8).sum() == 0
    assert codes[2, 3].float() == 448


def test_a_token_s_bytes_do_not_depend_on_the_tokens_beside_it() -> None:
    values = torch.randn(7, 32, generator=torch.Generator().manual_seed(2)).bfloat16()

    together = reference.quantise(values * torch.tensor([[1.0], [900.0], [1e-4], [1.0], [0.0], [5.0], [1e9]]).bfloat16())
    alone = reference.quantise(values[:1], 16)

    assert torch.equal(together[0][:1].view(torch.uint8), alone[0][:1].view(torch.uint8))
    assert torch.equal(together[1][:1], alone[1][:1])
