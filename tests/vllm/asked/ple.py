"""Loads a whole table through vLLM's own loader of per-layer embeddings, without the plugin and with it.

Class, loader and partitioned copy are vLLM's; only what its constructors want of a distributed group is put in by hand.
"""

from __future__ import annotations

import importlib
import json
from types import SimpleNamespace
from typing import Any

import torch

MODULE = "vllm.models.qwen4_exp.nvidia.ngram_embedding"
ROWS, WIDTH, SHARDS = 10, 4, 3
PARTITION = (3, 8)
TABLE = torch.arange(ROWS * WIDTH, dtype=torch.bfloat16).reshape(ROWS, WIDTH)


def main() -> None:
    module = importlib.import_module(MODULE)
    without = {name: _loaded(module, {name: TABLE}) for name in ("ngram_embedding.shard_.weight", "shard_.weight")}
    importlib.import_module("coatcheck.gpu.vllm.plugin").register()
    numbered = {f"ngram_embedding.shard_{number}.weight": TABLE[4 * number : 4 * number + 4] for number in range(SHARDS)}
    answers = {
        "without": without,
        "long name": _loaded(module, {"ngram_embedding.shard_.weight": TABLE}),
        "short name": _loaded(module, {"shard_.weight": TABLE}),
        "numbered": _loaded(module, numbered),
        "another shape": _loaded(module, {"shard_.weight": TABLE[:9]}),
        "expected": TABLE[slice(*PARTITION)].tolist(),
    }
    print(json.dumps(answers))


def _loaded(module: Any, weights: dict[str, torch.Tensor]) -> object:
    """The partition's rows after loading, or the error's type."""
    holder = _holder(module)
    try:
        holder.load_weights(iter(weights.items()))
    except Exception as error:
        return type(error).__name__
    return holder.ngram_embedding.weight.tolist()


def _holder(module: Any) -> Any:
    embedding = importlib.import_module("vllm.models.qwen4_exp.common.ple").PLEVocabParallelEmbedding
    table = embedding.__new__(embedding)
    torch.nn.Module.__init__(table)
    table.org_vocab_size, table.embedding_dim = ROWS, WIDTH
    table.shard_indices = SimpleNamespace(org_vocab_start_index=PARTITION[0], org_vocab_end_index=PARTITION[1])
    weight = torch.nn.Parameter(torch.full((PARTITION[1] - PARTITION[0], WIDTH), -1.0, dtype=torch.bfloat16), requires_grad=False)
    weight.weight_loader = table.weight_loader
    table.register_parameter("weight", weight)
    holder = module.Qwen4ExpNGramEmbedding.__new__(module.Qwen4ExpNGramEmbedding)
    torch.nn.Module.__init__(holder)
    for name in ("layer_multipliers", "ngram_heads_offsets", "ngram_heads_vocab_sizes"):
        holder.register_buffer(name, torch.zeros(2, dtype=torch.long))
    holder.split_ngram_parts, holder.ngram_embedding = SHARDS, table
    return holder


if __name__ == "__main__":
    main()
