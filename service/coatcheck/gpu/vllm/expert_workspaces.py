"""Workspaces of experts: layers whose FlashInfer B12x wrappers need the same of scratch memory share one set of it.

A wrapper that a CUDA graph is captured of allocates its own: about 400 MiB a layer in the article. vLLM's layers run one after the
other in one thread (streams that it captures in wait for one another), so that the thread stands for the order.
"""

from __future__ import annotations

import functools
import threading
from types import ModuleType
from typing import Any

from coatcheck.gpu.moe.workspace import WorkspaceKey, Workspaces
from coatcheck.gpu.vllm.parts import Outcome, Part, State

MODULE = "flashinfer.fused_moe.cute_dsl.b12x_moe"
CLASS = "B12xMoEWrapper"
BUFFERS = ("_static_workspace", "_dynamic_workspace", "_moe_output")
HANDED_IN = ("_shared_static_workspace", "_shared_dynamic_workspace", "_shared_output")
"""Buffers that whoever made the wrapper shares by itself: left alone."""
FIELDS = (
    "num_experts", "top_k", "hidden_size", "intermediate_size", "max_num_tokens", "num_local_experts", "output_dtype", "device",
    "activation", "quant_mode", "source_format",
)  # fmt: skip
"""Of the wrapper, in the order of ``WorkspaceKey``."""
OWN_POOL = "_get_cached_workspace"
"""What FlashInfer calls where it shares by itself."""


def part() -> Part:
    return Part("expert-workspaces", "shares the scratch memory of layers that need the same of it", (MODULE,), _apply)


def _apply(module: ModuleType) -> Outcome:
    wrapper = getattr(module, CLASS, None)
    allocate, run = getattr(wrapper, "_allocate_buffers", None), getattr(wrapper, "run", None)
    if not isinstance(wrapper, type) or not callable(allocate) or not callable(run):
        return Outcome(State.UNSUITABLE, f"no {CLASS} that allocates buffers and runs")
    if OWN_POOL in allocate.__code__.co_names:
        return Outcome(State.NOT_NEEDED, "this FlashInfer shares them itself")
    if not hasattr(allocate, "__wrapped__"):
        _share(wrapper, allocate, run)
    return Outcome(State.APPLIED, "one set of buffers for all layers of one shape")


def _share(wrapper: type, allocate: Any, run: Any) -> None:
    buffers: dict[WorkspaceKey, tuple[object, ...]] = {}
    workspaces = Workspaces(buffers.__getitem__)

    @functools.wraps(allocate)
    def _allocate_buffers(layer: Any) -> None:
        if any(getattr(layer, name, None) is not None for name in HANDED_IN):
            allocate(layer)
            return
        key = _key(layer)
        if key in buffers:
            for name, shared in zip(BUFFERS, buffers[key], strict=True):
                setattr(layer, name, shared)
        else:
            allocate(layer)
            buffers[key] = tuple(getattr(layer, name) for name in BUFFERS)
        layer.coatcheck_workspace = key

    @functools.wraps(run)
    def _run(layer: Any, *given: object, **named: object) -> object:
        key = getattr(layer, "coatcheck_workspace", None)
        if key is None:
            return run(layer, *given, **named)
        with workspaces.using(key, f"the wrapper at {id(layer):x}", threading.get_ident()):
            return run(layer, *given, **named)

    setattr(wrapper, "_allocate_buffers", _allocate_buffers)  # noqa: B010 - a type checker knows no such attribute
    setattr(wrapper, "run", _run)  # noqa: B010


def _key(layer: Any) -> WorkspaceKey:
    experts, top_k, hidden, intermediate, max_tokens, local_experts, *named = (getattr(layer, name) for name in FIELDS)
    return WorkspaceKey(experts, top_k, hidden, intermediate, max_tokens, local_experts, *(str(one) for one in named))
