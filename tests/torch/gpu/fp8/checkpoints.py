"""BF16 GLiClass checkpoints with mT5 encoders of a reduced width, really built and saved by their libraries; random weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from coatcheck.gpu.fp8.layout import EMBEDDINGS
from tests.torch import tiny

LABELS = ("delivery", "payment", "refund", "other")
TEXTS = (
    "the courier has postponed my delivery for the second day",
    "the card was charged twice and the bank says that it is your fault",
    "thanks",
)
ATTENTION = "model.encoder_model.encoder.block.0.layer.0.SelfAttention"


def gliclass(folder: Path, *, blocks: int, hidden: int = 32, feed_forward: int = 64) -> Path:
    """As the article's model: a cross-attention scorer over all positions. Each size here is a multiple of 16."""
    from transformers import MT5Config

    tokenizer = tiny.bert_tokenizer([*TEXTS, *LABELS], tiny.GLICLASS)
    encoder = MT5Config(
        vocab_size=len(tokenizer),
        d_model=hidden,
        d_kv=16,
        num_heads=2,
        d_ff=feed_forward,
        num_layers=blocks,
        decoder_start_token_id=0,
    )
    model, tokenizer = tiny.gliclass(
        folder, TEXTS, LABELS, encoder=encoder, tokenizer=tokenizer, scorer_type="cross-attn", pooling_strategy="pass",
        scorer_num_heads=2, scorer_mlp_hidden_size=32, problem_type="single_label_classification",
    )  # fmt: skip
    spread_out(model)
    tiny.save(model.bfloat16(), tokenizer, folder)
    return folder


def spread_out(model: Any) -> None:
    """Drawn as they are made, all answers of these models are nearly the same, and nothing could be seen in them."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "block" in name:
                parameter.copy_(torch.randn_like(parameter) / parameter.shape[1] ** 0.5)
            elif parameter.dim() == 2:
                parameter.mul_(4)


def tensors_of(file: Path) -> dict[str, torch.Tensor]:
    """By the library that defines the format, and not by ours."""
    from safetensors.torch import load_file

    found: dict[str, torch.Tensor] = load_file(file)
    return found


def rewritten(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> Path:
    """The checkpoint with other tensors."""
    from safetensors.torch import save_file

    tensors = tensors_of(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def configured(folder: Path, **changes: Any) -> Path:
    """The checkpoint with other words in its configuration; ``encoder`` is a mapping of its own."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["encoder_config"] |= changes.pop("encoder", {})
    path.write_text(json.dumps(config | changes))
    return folder


def bf16_model(folder: Path) -> Any:
    """As gliclass loads it; its embeddings stand under the name that it ties rightly."""
    assert EMBEDDINGS[0] in tensors_of(folder / "model.safetensors")
    return loaded_by_gliclass(folder)


def loaded_by_gliclass(folder: Path) -> Any:
    from gliclass import GLiClassModel, GLiClassModelConfig

    config = GLiClassModelConfig.from_pretrained(folder, local_files_only=True)
    config.encoder_model_name = str(folder)
    return GLiClassModel.from_pretrained(folder, config=config, local_files_only=True, dtype=torch.bfloat16).eval()


def inputs(folder: Path, texts: tuple[str, ...] = TEXTS) -> dict[str, torch.Tensor]:
    """Of the texts beside the labels, in one batch."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    prompt = "".join(f"<<LABEL>>{label}" for label in LABELS) + "<<SEP>>"
    read = tokenizer([prompt + text for text in texts], padding="longest", return_tensors="pt")
    return {"input_ids": read["input_ids"], "attention_mask": read["attention_mask"]}


def asked(model: Any, given: dict[str, torch.Tensor]) -> torch.Tensor:
    """The logits, a row a text."""
    with torch.inference_mode():
        found: torch.Tensor = model(**given, max_num_classes=len(LABELS)).logits.float()
    return found
