"""Asks vLLM's own planner for a hybrid model's block, page and padding, format by format, and prints what it answers.

Planner, configuration and backend are vLLM's: ``Platform._align_hybrid_block_size`` asks its FlashInfer backend how it packs.
FlashInfer itself is not installed beside vLLM for the CPU; empty modules stand where the backend imports it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.vllm.asked.tiny_models import HYBRID

FORMATS = {"bf16": "auto", "fp8": "fp8", "nvfp4": "nvfp4"}


class _Empty(ModuleType):
    """A module in which every name is a class of nothing."""

    __path__: list[str] = []  # noqa: RUF012 - what makes a module a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _EmptyFlashInfer(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == "flashinfer" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def main() -> None:
    from vllm.config import set_current_vllm_config
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.models import ModelRegistry
    from vllm.platforms.interface import Platform
    from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE
    from vllm.v1.kv_cache_interface import FullAttentionSpec, MambaSpec, get_kv_quant_mode

    from coatcheck.gpu.vllm.plugin import armed

    plugin = armed()
    sys.meta_path.append(_EmptyFlashInfer())
    from vllm.v1.attention.backends.flashinfer import FlashInferBackend

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps({**HYBRID, "vocab_size": 512}), "utf-8")
        read = EngineArgs(model=folder, skip_tokenizer_init=True, load_format="dummy", dtype="bfloat16").create_engine_config()
        model, _ = ModelRegistry.resolve_model_cls(read.model_config.architectures, read.model_config)
        state = MambaSpec(
            shapes=model.get_mamba_state_shape_from_config(read),
            dtypes=model.get_mamba_state_dtype_from_config(read),
            block_size=-1,
        )
        answers: dict[str, Any] = {"state_bytes": state.page_size_bytes}
        for name, dtype in FORMATS.items():
            cache = read.cache_config
            cache.cache_dtype, cache.block_size, cache.mamba_page_size_padded = dtype, 16, None
            Platform._align_hybrid_block_size(read, FlashInferBackend)
            spec = FullAttentionSpec(
                block_size=cache.block_size,
                num_kv_heads=HYBRID["num_key_value_heads"],
                head_size=HYBRID["head_dim"],
                dtype=read.model_config.dtype if dtype == "auto" else STR_DTYPE_TO_TORCH_DTYPE[dtype],
                kv_quant_mode=get_kv_quant_mode(dtype),
            )
            with set_current_vllm_config(read):
                page = FlashInferBackend.customize_spec(spec).page_size_bytes
            answers[name] = {
                "block_tokens": cache.block_size,
                "bytes_per_token": page // cache.block_size,
                "page_bytes": page,
                "padded_to": cache.mamba_page_size_padded,
            }
    [cache_part] = [part for part in plugin.report().parts if part.name == "nvfp4-cache"]
    answers["nvfp4-cache"] = cache_part.places[0].detail
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
