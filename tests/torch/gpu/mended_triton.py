"""Triton's interpreter with its casts and its bfloat16 products mended, so that what a kernel computes on a CPU can be trusted.

As it comes (3.8 and 3.9), it rounds float32 to float8 wrongly (a carry is lost, subnormals are off, nothing saturates), cuts
float32 to bfloat16 instead of rounding it, and multiplies the raw integers of bfloat16 in ``tl.dot``. Upstream: triton issue 8322,
pull request 11897. Not mended, and so not to be used in a kernel: bfloat16 arithmetic without an upcast, and a scalar condition
combined with a block of them (write ``offsets < tl.where(row < rows, size, 0)``).
"""

from __future__ import annotations

from typing import Any

import numpy
import torch


def mend() -> None:
    """Mends the interpreter of this process; a second time changes nothing."""
    import triton.language as tl
    from triton.runtime import interpreter

    if getattr(interpreter, "_mended", False):
        return
    types = {
        tl.float64: torch.float64,
        tl.float32: torch.float32,
        tl.float16: torch.float16,
        tl.bfloat16: torch.bfloat16,
        tl.float8e4nv: torch.float8_e4m3fn,
        tl.float8e5: torch.float8_e5m2,
    }
    stock_convert, stock_dot = interpreter._convert_float, interpreter.InterpreterBuilder.create_dot

    def convert(given: Any, source: Any, target: Any, rounding: Any) -> Any:
        if source not in types or target not in types:
            return stock_convert(given, source, target, rounding)
        values = torch.from_numpy(_bits(given)).view(types[source])
        if target == tl.float8e4nv:
            # As a GPU's conversion does by default: what is too large becomes the largest, only NaN stays NaN.
            values = values.to(torch.float32).clamp(-448.0, 448.0)
        done = values.to(types[target])
        return done.view(_INTEGERS[done.element_size()]).numpy().view(_UNSIGNED[done.element_size()]).reshape(given.shape)

    def dot(self: Any, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        return stock_dot(self, _widened(a), _widened(b), d, input_precision, max_num_imprecise_acc)

    def _widened(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        wide = convert(handle.data, tl.bfloat16, tl.float32, None).view(numpy.float32)
        return interpreter.TensorHandle(wide, tl.float32)

    interpreter._convert_float = convert
    interpreter.InterpreterBuilder.create_dot = dot
    interpreter._mended = True


_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_UNSIGNED = {1: numpy.uint8, 2: numpy.uint16, 4: numpy.uint32, 8: numpy.uint64}
_SIGNED = {1: numpy.int8, 2: numpy.int16, 4: numpy.int32, 8: numpy.int64}


def _bits(given: Any) -> Any:
    """The array's bytes as signed integers of its width, in an array of its own."""
    array = numpy.array(given, order="C", copy=True)
    return array.view(_SIGNED[array.itemsize]).reshape(array.shape)
