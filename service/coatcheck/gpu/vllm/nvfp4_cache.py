"""vLLM's own NVFP4 cache, FlashInfer's: held against what our planner counts, and left as it is.

No format of ours is registered: under its name one of vLLM's backends would run, none of which reads or writes our cache.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from coatcheck.gpu.nvfp4.planner import KvFormat, full_attention
from coatcheck.gpu.vllm.parts import Outcome, Part, State

MODULE = "vllm.v1.attention.backends.flashinfer"
SPECS = "vllm.v1.kv_cache_interface"
CLASS, METHOD = "FlashInferBackend", "customize_spec"
HEADS, HEAD_SIZE = 2, 256


def part() -> Part:
    return Part("nvfp4-cache", "holds vLLM's own NVFP4 cache against what the planner counts", (MODULE,), _apply)


def _apply(module: ModuleType) -> Outcome:
    packed = getattr(getattr(module, CLASS, None), METHOD, None)
    if not callable(packed):
        return Outcome(State.UNSUITABLE, f"no {CLASS} that says how it packs")
    ours = full_attention("full attention", 1, HEADS, HEAD_SIZE, KvFormat.NVFP4).bytes_per_token
    theirs = packed(_spec()).page_size_bytes
    if theirs == ours:
        return Outcome(State.NOT_NEEDED, f"a token of {HEADS} heads of {HEAD_SIZE} takes {ours} bytes, as the planner counts")
    return Outcome(State.UNSUITABLE, f"a token takes {theirs} bytes, and the planner counts {ours}: its plans do not hold here")


def _spec() -> Any:
    """One token's, as vLLM describes it to its backends."""
    import torch

    specs: Any = importlib.import_module(SPECS)
    return specs.FullAttentionSpec(
        block_size=1, num_kv_heads=HEADS, head_size=HEAD_SIZE, dtype=torch.uint8, kv_quant_mode=specs.get_kv_quant_mode("nvfp4")
    )
