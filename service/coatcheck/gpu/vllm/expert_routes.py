"""Routes to experts: ids that are no expert's are made harmless before FlashInfer's B12x kernels index with them."""

from __future__ import annotations

import functools
import inspect
import sys
from types import ModuleType
from typing import Any

from coatcheck.gpu.moe.routes import Routes
from coatcheck.gpu.vllm.parts import Outcome, Part, State

MODULE = "vllm.model_executor.layers.fused_moe.experts.flashinfer_b12x_moe"
CLASS = "FlashInferB12xExperts"
NEEDED = ("topk_ids", "topk_weights", "global_num_experts")


def part() -> Part:
    """Of the one class of experts that hands ids on unguarded; the others mask what is no expert's."""
    return Part(
        "expert-routes", "sends routes to no expert to expert 0 with weight 0, and counts those above the range", (MODULE,), _apply
    )


def ids_above() -> int:
    """How many ids lay above the range so far in this process. Waits for the device.

    Outside padding each is a fault upstream. For a worker's own process: ``llm.collective_rpc`` runs it there.
    """
    experts = getattr(sys.modules.get(MODULE), CLASS, None)
    counted: list[Routes] = getattr(getattr(experts, "apply", None), "counted", [])
    return sum(routes.above() for routes in counted)


def _apply(module: ModuleType) -> Outcome:
    experts = getattr(module, CLASS, None)
    run = getattr(experts, "apply", None)
    if not isinstance(experts, type) or not callable(run):
        return Outcome(State.UNSUITABLE, f"no {CLASS} with an apply")
    if not hasattr(run, "counted"):
        signature = inspect.signature(run)
        missing = [name for name in NEEDED if name not in signature.parameters]
        if missing:
            return Outcome(State.UNSUITABLE, f"{CLASS}.apply takes no {', '.join(missing)}")
        setattr(experts, "apply", _guarded(run, signature))  # noqa: B010 - a type checker knows no such attribute
    return Outcome(State.APPLIED, "ids are checked before the kernel")


def _guarded(run: Any, signature: inspect.Signature) -> Any:
    counted: list[Routes] = []

    @functools.wraps(run)
    def apply(experts: Any, *given: object, **named: object) -> object:
        bound = signature.bind(experts, *given, **named)
        ids, weights = bound.arguments["topk_ids"], bound.arguments["topk_weights"]
        routes = getattr(experts, "coatcheck_routes", None)
        if routes is None:
            # Made in the first forward, which vLLM runs to measure memory, and never while a graph is captured.
            routes = experts.coatcheck_routes = Routes(bound.arguments["global_num_experts"], str(ids.device))
            counted.append(routes)
        bound.arguments["topk_ids"], bound.arguments["topk_weights"] = routes.safe(ids, weights)
        return run(*bound.args, **bound.kwargs)

    setattr(apply, "counted", counted)  # noqa: B010 - a function's own attribute
    return apply
