"""Writes two folders that vLLM serves: a tiny random Llama, and a hybrid that is a configuration alone. Prints their names."""

from __future__ import annotations

import json
import string
import sys
from pathlib import Path
from typing import Any

CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
HYBRID = {
    "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "hidden_size": 64, "intermediate_size": 64,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4,
    "linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64, "decoder_sparse_step": 1, "norm_topk_prob": True, "mlp_only_layers": [],
    "max_position_embeddings": 16_384, "rms_norm_eps": 1e-6, "hidden_act": "silu", "rope_theta": 10_000.0,
    "partial_rotary_factor": 0.25, "torch_dtype": "bfloat16", "tie_word_embeddings": False, "attention_bias": False,
}  # fmt: skip
"""One attention layer among three gated delta nets, of the article's sizes where the cache is concerned, and tiny elsewhere."""
SPARSE_TYPES = ["linear_attention"] * 3 + ["qwen_sparse_attention"]
"""Its layers as a checkpoint may call them whose attention the runtime does not know."""


def main(folder: Path) -> None:
    tokenizer = _tokenizer()
    llama, hybrid = folder / "llama", folder / "hybrid"
    for one in (llama, hybrid):
        tokenizer.save_pretrained(one)
    _llama(tokenizer).save_pretrained(llama)
    written = {**HYBRID, "layer_types": SPARSE_TYPES, "vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1}
    (hybrid / "config.json").write_text(json.dumps(written, indent=2), "utf-8")
    print(json.dumps({"llama": str(llama), "hybrid": str(hybrid)}))


def _tokenizer() -> Any:
    """One token a byte, and a few more."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet()), *(f"{letter}e" for letter in string.ascii_lowercase)]
    merges = [(letter, "e") for letter in string.ascii_lowercase]
    inner = Tokenizer(models.BPE({token: number for number, token in enumerate(alphabet)}, merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _llama(tokenizer: Any) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=4_096, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        # Every state has a part in common, by which the end of a text is the least likely token: no answer is empty by chance.
        model.model.embed_tokens.weight[:, 0] = 0.2
        model.lm_head.weight[config.eos_token_id] = 0.0
        model.lm_head.weight[config.eos_token_id, 0] = -50.0
    return model.to(torch.bfloat16)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
