"""The FP8 kernels as they are compiled ahead of time: the widths of the article's model, and the instructions that are wanted."""

from __future__ import annotations

from coatcheck.gpu.fp8.launch import COLUMNS, quantise_constants, quantise_warps
from coatcheck.gpu.kernels.ahead import ROUNDED_DIVISIONS, Specimen


def specimens() -> list[Specimen]:
    """Rows of 2,048 (q, k, v, o, wi_0, wi_1) and of 5,120 (wo)."""
    from coatcheck.gpu.fp8 import kernels

    quantise = [
        Specimen(
            name=f"fp8 quantise, rows of {columns}",
            kernel=kernels.quantise_kernel,
            signature={
                "values": "*bf16", "quantised": "*fp8e4nv", "scales": "*fp32",
                **dict.fromkeys(("rows", "columns", "value_row", "quantised_row"), "i32"),
            },
            constants=quantise_constants(columns),
            expected={
                "saturating E4M3 conversion": r"cvt\.rn\.satfinite\.e4m3x2\.f32",
                "rounded division": r"div\.rn\.f32",
                "no other division": ROUNDED_DIVISIONS,
                "maximum": r"max\.f32",
            },
            warps=quantise_warps(columns),
            divisible=("columns", "value_row", "quantised_row"),
        )
        for columns in (2_048, 5_120)
    ]  # fmt: skip
    scale_out = Specimen(
        name="fp8 scale-out",
        kernel=kernels.scale_out_kernel,
        signature={
            "sums": "*fp32", "row_scales": "*fp32", "channel_scales": "*fp32", "out": "*bf16",
            **dict.fromkeys(("columns", "sums_row", "out_row"), "i32"),
        },
        constants={"BLOCK": COLUMNS},
        expected={"BF16 conversion": r"cvt\.rn\.bf16(x2)?\.f32"},
        divisible=("columns", "sums_row", "out_row"),
    )  # fmt: skip
    return [*quantise, scale_out]
