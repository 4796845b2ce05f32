"""Triton kernels: one quantises activations by rows, the other scales float32 sums out to BF16. Each step is ``reference.py``'s."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def quantise_kernel(
    values, quantised, scales, rows, columns, value_row, quantised_row,
    LARGEST: tl.constexpr, SMALLEST_SCALE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program a row of the output; those from ``rows`` on are padding and become zeros."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    # A count in the place of a mask: a scalar condition does not combine with a block of them in the interpreter.
    read = tl.where(row < rows, columns, 0)
    value = tl.load(values + row * value_row + column, mask=column < read, other=0.0).to(tl.float32)
    largest = tl.max(tl.abs(value), axis=0)
    scale = tl.maximum(tl.div_rn(largest, LARGEST), SMALLEST_SCALE)
    # The conversion saturates: what one step of rounding puts above the largest value becomes it.
    code = (value * tl.div_rn(1.0, scale)).to(tl.float8e4nv)
    tl.store(quantised + row * quantised_row + column, code, mask=column < columns)
    tl.store(scales + row, scale)


@triton.jit
def scale_out_kernel(sums, row_scales, channel_scales, out, columns, sums_row, out_row, BLOCK: tl.constexpr):
    """One program a row and a block of columns. Only rows that are wanted have programs."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    within = column < columns
    total = tl.load(sums + row * sums_row + column, mask=within, other=0.0)
    scaled = total * tl.load(row_scales + row) * tl.load(channel_scales + column, mask=within, other=0.0)
    tl.store(out + row * out_row + column, scaled.to(tl.bfloat16), mask=within)
