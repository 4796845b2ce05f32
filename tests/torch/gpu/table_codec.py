"""An NVFP4 codec that shares nothing with ours: fractions, tables and the nearest entry, for one group of 16 at a time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy

E2M1 = [Fraction(numerator, 2) for numerator in (0, 1, 2, 3, 4, 6, 8, 12)]
"""Magnitudes by code."""


def e4m3(byte: int) -> Fraction | None:
    """The exact value of a byte as the standard writes it: bias 7, no infinity, and NaN where all bits but the sign are set."""
    sign, exponent, mantissa = -1 if byte & 0x80 else 1, (byte >> 3) & 0xF, byte & 7
    if exponent == 15 and mantissa == 7:
        return None
    if exponent == 0:
        return sign * Fraction(mantissa, 8) * Fraction(1, 64)
    return sign * (1 + Fraction(mantissa, 8)) * Fraction(2) ** (exponent - 7)


_SCALES = [e4m3(byte) for byte in range(0x7F)]


def group(values: Sequence[float], global_scale: float = 1.0) -> tuple[list[int], int]:
    """Codes and scale byte of a group. Each product and quotient is rounded to float32, once, by numpy."""
    singles = numpy.asarray(values, dtype=numpy.float32)
    encoding = numpy.float32(global_scale)
    wanted = Fraction(float(numpy.abs(singles).max() * encoding / numpy.float32(6)))
    scale = _nearest(wanted, [entry for entry in _SCALES if entry is not None])
    if scale == 0 and singles.any():
        scale = 1
    chosen = _SCALES[scale]
    factor = encoding / numpy.float32(float(chosen)) if chosen else numpy.float32(0)
    codes = [_nearest(abs(Fraction(float(single * factor))), E2M1) | (8 if numpy.signbit(single) else 0) for single in singles]
    return codes, scale


def value(code: int, scale: int, global_scale: float = 1.0) -> float:
    """The float32 that a code stands for under a scale byte; NaN under a scale of NaN."""
    factor = e4m3(scale)
    if factor is None:
        return float("nan")
    exact = E2M1[code & 7] * factor * (-1 if code & 8 else 1)
    return float(numpy.float32(float(exact)) / numpy.float32(global_scale))


def _nearest(wanted: Fraction, table: Sequence[Fraction]) -> int:
    """The entry at the least distance; of two the even one. What is above the last is the last."""
    return min(range(len(table)), key=lambda code: (abs(table[code] - wanted), code & 1))
