"""Packages that stand where vLLM and FlashInfer would, with just the places that the plugin knows: their real ones want a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PLE = "vllm.models.qwen4_exp.nvidia.ple_layer"
ROUTES = "vllm.model_executor.layers.fused_moe.experts.flashinfer_b12x_moe"
WORKSPACES = "flashinfer.fused_moe.cute_dsl.b12x_moe"
PAGES = "vllm.platforms.interface"

PLE_SOURCE = """
class Qwen4ExpNGramEmbedding:
    def load_weights(self, weights):
        self.loaded = [(name, weight) for name, weight in weights]
        return {name for name, _ in self.loaded}
"""
ROUTES_SOURCE = """
class FlashInferB12xExperts:
    def apply(self, output, hidden_states, topk_weights, topk_ids, global_num_experts):
        self.seen = (topk_ids, topk_weights)
"""
WORKSPACES_SOURCE = """
class B12xMoEWrapper:
    within = None

    def __init__(self, intermediate_size=8, shared_output=None):
        self._shared_output = shared_output
        self.num_experts = self.num_local_experts = 4
        self.top_k, self.hidden_size, self.max_num_tokens = 2, 16, 32
        self.intermediate_size = intermediate_size
        self.output_dtype, self.device, self.activation = "bf16", "cuda", "silu"
        self.quant_mode, self.source_format = "nvfp4", "modelopt"
        self._allocate_buffers()

    def _allocate_buffers(self):
        self._static_workspace, self._dynamic_workspace, self._moe_output = object(), object(), self._shared_output or object()

    def run(self):
        return self.within() if self.within else self._moe_output
"""
PAGES_SOURCE = """
class Platform:
    @classmethod
    def _align_hybrid_block_size(cls, vllm_config, backend_cls):
        vllm_config.cache_config.block_size = backend_cls
"""
ALL = {PLE: PLE_SOURCE, ROUTES: ROUTES_SOURCE, WORKSPACES: WORKSPACES_SOURCE, PAGES: PAGES_SOURCE}


def write(folder: Path, modules: dict[str, str]) -> None:
    """The modules, and the packages above them."""
    for name, source in modules.items():
        file = folder.joinpath(*name.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        for above in file.relative_to(folder).parents[:-1]:
            (folder / above / "__init__.py").touch()
        file.write_text(source, "utf-8")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to write stand-ins into; what they left in this process is taken away again."""
    before = set(sys.modules)
    finders = list(sys.meta_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder in finders]
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("vllm", "flashinfer", "transformers"):
            del sys.modules[name]
