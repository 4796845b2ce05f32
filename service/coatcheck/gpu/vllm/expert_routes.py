"""Routes to experts: ids that are no expert's are made harmless before B12x kernels index with them."""

from __future__ import annotations

import functools
import inspect
import sys
from types import ModuleType
from typing import Any

from coatcheck.gpu.moe.routes import Routes
from coatcheck.gpu.vllm.parts import Outcome, Part, State

CLASSES = {
    "vllm.model_executor.layers.fused_moe.experts.flashinfer_b12x_moe": "FlashInferB12xExperts",
    "vllm.model_executor.layers.fused_moe.b12x": "B12xExperts",
}
"""By module: vLLM's experts that hand ids on unguarded, to FlashInfer's kernels or to B12x's own. Others mask them."""
NEEDED = ("topk_ids", "topk_weights", "global_num_experts")


def part() -> Part:
    """Changed wherever a build of vLLM has the class."""
    purpose = "sends routes to no expert to expert 0 with weight 0, and counts those above the range"
    return Part("expert-routes", purpose, tuple(CLASSES), _apply)


def ids_above() -> int:
    """How many ids lay above the range so far in this process. Waits for the device.

    Outside padding each is a fault upstream. For a worker's own process: ``llm.collective_rpc`` runs it there.
    """
    experts = [getattr(sys.modules.get(module), name, None) for module, name in CLASSES.items()]
    counted: list[list[Routes]] = [getattr(getattr(one, "apply", None), "counted", []) for one in experts]
    return sum(routes.above() for layers in counted for routes in layers)


def _apply(module: ModuleType) -> Outcome:
    name = CLASSES[module.__name__]
    experts = getattr(module, name, None)
    run = getattr(experts, "apply", None)
    if not isinstance(experts, type) or not callable(run):
        return Outcome(State.UNSUITABLE, f"no {name} with an apply")
    if not hasattr(run, "counted"):
        signature = inspect.signature(run)
        missing = [needed for needed in NEEDED if needed not in signature.parameters]
        if missing:
            return Outcome(State.UNSUITABLE, f"{name}.apply takes no {', '.join(missing)}")
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
