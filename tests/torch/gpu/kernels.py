"""The smallest kernels that cast and multiply, to hold the interpreter against torch."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def cast(source, target, SIZE: tl.constexpr, TYPE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    tl.store(target + offsets, tl.load(source + offsets).to(TYPE))


@triton.jit
def product(a, b, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))
