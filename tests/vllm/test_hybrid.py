"""A hybrid that is a configuration alone, planned and served by a real vLLM on the CPU with the plugin."""

from __future__ import annotations

from pathlib import Path

from coatcheck.gpu.nvfp4 import flash_next
from coatcheck.gpu.nvfp4.planner import KvFormat
from tests.vllm.environment import chat, needs_vllm, serving

pytestmark = needs_vllm


def test_a_hybrid_that_is_a_configuration_alone_gets_the_block_that_our_planner_says(
    models: dict[str, Path], tmp_path: Path
) -> None:
    """FP8 keys and values: the CPU has no NVFP4 cache. Its attention is called sparse, and read as full."""
    both = "coatcheck,coatcheck_sparse_as_full"
    options = ("--load-format", "dummy", "--kv-cache-dtype", "fp8", "--block-size", "32", "--max-model-len", "8192")
    expected = flash_next.planned(KvFormat.FP8).block_tokens[0]

    with serving(models["hybrid"], tmp_path / "hybrid.log", *options, plugins=both) as server:
        answer = chat(server, "Which port does staging use?", max_tokens=4)

    assert answer["usage"]["completion_tokens"] == 4
    assert server.lines("qwen_sparse_attention called full_attention in 1 layers")
    assert server.lines(f"Setting attention block size to {expected} tokens")
    told = server.lines("coatcheck page-plan: blocks of")
    assert told
    assert f"blocks of {expected:,} tokens in fp8 (the least that holds a state: {expected:,})" in told[0]
