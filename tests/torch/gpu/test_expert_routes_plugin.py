"""Routes reach vLLM's experts only with ids that are experts', however its apply is called."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

from coatcheck.gpu.vllm import plugin
from coatcheck.gpu.vllm.expert_routes import ids_above
from tests.gpu.vllm.standin import ROUTES, ROUTES_SOURCE, installed, write

__all__ = ["installed"]
IDS = torch.tensor([[-1, 7, 512]], dtype=torch.int32)
WEIGHTS = torch.tensor([[0.4, 0.5, 0.6]])


@pytest.mark.parametrize("by_name", [True, False])
def test_the_articles_routes_are_cleaned_and_counted(by_name: bool, installed: Path) -> None:
    write(installed, {ROUTES: ROUTES_SOURCE})
    plugin.register()
    experts = importlib.import_module(ROUTES).FlashInferB12xExperts
    layers = [experts(), experts()]

    for layer in layers:
        if by_name:
            layer.apply(output=None, hidden_states=None, topk_weights=WEIGHTS, topk_ids=IDS, global_num_experts=512)
        else:
            layer.apply(None, None, WEIGHTS, IDS, 512)

    for layer in layers:
        ids, weights = layer.seen
        assert ids.tolist() == [[0, 7, 0]]
        assert ids.dtype == torch.int32
        assert weights.tolist() == [[0.0, 0.5, 0.0]]
    assert ids_above() == 2
    assert IDS.tolist() == [[-1, 7, 512]]


def test_without_the_plugin_nothing_was_counted() -> None:
    assert ids_above() == 0
