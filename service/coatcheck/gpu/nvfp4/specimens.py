"""The NVFP4 kernels as they are compiled ahead of time: the shapes that serve, and the instructions that they are written for."""

from __future__ import annotations

from coatcheck.gpu.kernels.ahead import ROUNDED_DIVISIONS, Specimen
from coatcheck.gpu.nvfp4.launch import STAGES, WARPS, read_constants, write_constants

_STRIDES = ("page_block", "page_kind", "page_token", "page_head")


def specimens() -> list[Specimen]:
    """Head sizes of 128 and 256, 1, 12 and 24 query heads for each KV head."""
    from coatcheck.gpu.nvfp4 import kernels

    writers = [
        Specimen(
            name=f"nvfp4 write, head size {size}",
            kernel=kernels.write_kernel,
            signature={
                "keys": "*bf16", "values": "*bf16", "slots": "*i64", "pages": "*u8", "capacity": "i32", "page_size": "i32",
                **dict.fromkeys(("key_token", "key_head", "value_token", "value_head", *_STRIDES), "i32"),
                "key_scale": "fp32", "value_scale": "fp32",
            },
            constants=write_constants(size),
            expected={
                "saturating E4M3 conversion": r"cvt\.rn\.satfinite\.e4m3x2\.f32",
                "rounded division": r"div\.rn\.f32",
                "no other division": ROUNDED_DIVISIONS,
            },
            warps=WARPS,
            stages=STAGES,
            divisible=("page_size", "key_token", "key_head", "value_token", "value_head", *_STRIDES),
        )
        for size in (128, 256)
    ]  # fmt: skip
    readers = [
        Specimen(
            name=f"nvfp4 read, head size {size}, {shared} query heads a KV head",
            kernel=kernels.read_kernel,
            signature={
                "queries": "*bf16", "selected": "*i64", "pages": "*u8", "out": "*bf16",
                **dict.fromkeys(("capacity", "page_size", "selected_count", "query_heads"), "i32"),
                **dict.fromkeys(("query_row", "query_head", "selected_row", "selected_head", "out_row", "out_head"), "i32"),
                **dict.fromkeys(_STRIDES, "i32"),
                "score_scale": "fp32", "value_scale": "fp32",
            },
            constants=read_constants(size, shared),
            expected={
                "E4M3 to half conversion": r"cvt\.rn\.f16x2\.e4m3x2",
                "BF16 matrix product": r"mma\.sync\.aligned\S*\.bf16\.bf16|wgmma\S*\.bf16\.bf16|tcgen05\.mma",
                "FP16 matrix product": r"mma\.sync\.aligned\S*\.f16\.f16|wgmma\S*\.f16\.f16|tcgen05\.mma",
            },
            warps=WARPS,
            stages=STAGES,
            divisible=("page_size", "query_row", "query_head", "out_row", "out_head", *_STRIDES),
        )
        for size, shared in ((128, 1), (256, 12), (256, 24))
    ]  # fmt: skip
    return [*writers, *readers]
