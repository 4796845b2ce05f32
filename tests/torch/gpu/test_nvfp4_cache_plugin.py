"""vLLM's own NVFP4 cache is held against the planner's count, and nothing of it is changed."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from coatcheck.gpu.vllm import plugin
from coatcheck.gpu.vllm.parts import State
from tests.gpu.vllm.standin import installed, write

__all__ = ["installed"]
BACKEND = "vllm.v1.attention.backends.flashinfer"
SPECS = """
from types import SimpleNamespace as FullAttentionSpec

def get_kv_quant_mode(name):
    return name
"""
PACKED = """
from types import SimpleNamespace

class FlashInferBackend:
    @classmethod
    def customize_spec(cls, spec):
        assert spec.kv_quant_mode == "nvfp4"
        return SimpleNamespace(page_size_bytes=2 * spec.num_kv_heads * {bytes_a_vector})
"""


@pytest.mark.parametrize(
    ("source", "state", "said"),
    [
        (PACKED.format(bytes_a_vector=144), State.NOT_NEEDED, "takes 576 bytes, as the planner counts"),
        (PACKED.format(bytes_a_vector=160), State.UNSUITABLE, "takes 640 bytes, and the planner counts 576"),
        ("class FlashInferBackend: pass\n", State.UNSUITABLE, "no FlashInferBackend that says how it packs"),
    ],
)
def test_what_a_token_takes_is_compared(source: str, state: State, said: str, installed: Path) -> None:
    write(installed, {BACKEND: source, "vllm.v1.kv_cache_interface": SPECS})
    plugin.register()

    importlib.import_module(BACKEND)

    [part] = [part for part in plugin.armed().report().parts if part.name == "nvfp4-cache"]
    assert (part.state, part.places[0].detail.endswith(said) or said in part.places[0].detail) == (state, True)
