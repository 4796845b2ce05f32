"""Calls the ``apply`` of vLLM's experts with the article's routes, the plugin loaded, and prints what reached the kernels' callers.

The classes are vLLM's; what they would launch on a GPU is replaced by something that writes down its arguments.
"""

from __future__ import annotations

import importlib
import json
from types import SimpleNamespace
from typing import Any

import torch

FLASHINFER = "vllm.model_executor.layers.fused_moe.experts.flashinfer_b12x_moe"
OWN = "vllm.model_executor.layers.fused_moe.b12x"
IDS = torch.tensor([[-1, 7, 512]], dtype=torch.int32)
WEIGHTS = torch.tensor([[0.4, 0.5, 0.6]])


class Recorder:
    """Stands where a launch would be."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def run(self, **arguments: Any) -> torch.Tensor:
        self.seen = arguments
        return torch.zeros(1, 4)


def main() -> None:
    importlib.import_module("vllm.plugins").load_general_plugins()
    through_flashinfer, own = _flashinfer(), _own()
    above = importlib.import_module("coatcheck.gpu.vllm.expert_routes").ids_above()
    print(json.dumps({"FlashInferB12xExperts": through_flashinfer, "B12xExperts": own, "above": above}))


def _flashinfer() -> list[Any]:
    module, launched = importlib.import_module(FLASHINFER), Recorder()
    experts = object.__new__(module.FlashInferB12xExperts)
    one = torch.ones(1)
    experts.quant_config = SimpleNamespace(w1_scale=one, w2_scale=one, g1_alphas=one, g2_alphas=one)
    experts._fc2_input_scale = experts.w1_sf_mma = experts.w2_sf_mma = one
    experts._wrapper = launched
    _apply(experts)
    return [launched.seen["token_selected_experts"].tolist(), _rounded(launched.seen["token_final_scales"])]


def _own() -> list[Any]:
    module: Any = importlib.import_module(OWN)
    launched = Recorder()
    module._run_b12x_moe_plan, module._workspace_as_b12x_scratch = launched.run, lambda workspace, plan: None
    experts = object.__new__(module.B12xExperts)
    experts._apply_router_weight_on_input, experts._quant_mode = False, "nvfp4"
    experts._prepared = lambda: None
    experts._plan = lambda **sizes: None
    _apply(experts)
    return [launched.seen["topk_ids"].tolist(), _rounded(launched.seen["topk_weights"])]


def _apply(experts: Any) -> None:
    nothing = dict.fromkeys(
        ("w1", "w2", "activation", "expert_map", "a1q_scale", "a2_scale", "workspace13", "workspace2", "expert_tokens_meta")
    )
    experts.apply(
        output=torch.empty(1, 4), hidden_states=torch.ones(1, 4), topk_weights=WEIGHTS, topk_ids=IDS, global_num_experts=512,
        apply_router_weight_on_input=False, **nothing,
    )  # fmt: skip


def _rounded(weights: torch.Tensor) -> list[list[float]]:
    return [[round(weight, 3) for weight in row] for row in weights.tolist()]


if __name__ == "__main__":
    main()
