"""The plan of pages: says what vLLM's own planner has decided for a hybrid model, and what that means for its prefix cache.

Changes nothing. vLLM raises a hybrid model's block until a page of keys and values holds a recurrent state, and finds prefixes in
whole blocks: under an NVFP4 cache that may be thousands of tokens, which nothing else in its log says.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from coatcheck.domain.errors import GpuRefused
from coatcheck.gpu.nvfp4.model_config import planned
from coatcheck.gpu.nvfp4.planner import KvFormat
from coatcheck.gpu.vllm.parts import Outcome, Part, State
from coatcheck.gpu.vllm.saying import say

MODULE = "vllm.platforms.interface"
CLASS, METHOD = "Platform", "_align_hybrid_block_size"


def part() -> Part:
    return Part("page-plan", "says which block a hybrid model got, and that shorter prefixes are never found", (MODULE,), _apply)


def _apply(module: ModuleType) -> Outcome:
    platform = getattr(module, CLASS, None)
    method = vars(platform).get(METHOD) if isinstance(platform, type) else None
    if not isinstance(method, classmethod):
        return Outcome(State.UNSUITABLE, f"no {CLASS}.{METHOD}")
    align = method.__func__
    if not hasattr(align, "__wrapped__"):

        def aligned(own: type[Any], /, vllm_config: Any, *given: object, **named: object) -> object:
            done = align(own, vllm_config, *given, **named)
            _say(vllm_config)
            return done

        setattr(platform, METHOD, classmethod(functools.update_wrapper(aligned, align)))
    return Outcome(State.APPLIED, "vLLM's plan is told, and left as it is")


def _say(vllm_config: Any) -> None:
    cache = vllm_config.cache_config
    least = _least(vllm_config.model_config, str(cache.cache_dtype))
    say(
        f"page-plan: blocks of {cache.block_size:,} tokens in {cache.cache_dtype} ({least}). Prompts that share fewer tokens find "
        "nothing in the prefix cache."
    )


def _least(model_config: Any, cache_dtype: str) -> str:
    """What our planner finds: the least block that any backend could have."""
    kind = KvFormat.FP8 if cache_dtype.startswith("fp8") else KvFormat.NVFP4 if cache_dtype.startswith("nvfp4") else KvFormat.BF16
    try:
        found = planned(model_config.hf_text_config.to_dict(), kind)
    except GpuRefused as refused:
        return f"what would be least is not known: {refused.detail}"
    return f"the least that holds a state: {found.block_tokens[0]:,}"
