"""Tiny classifiers and summarisers in folders, as their library writes them, with random weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.torch.tiny import bert_tokenizer

TEXT = (
    "the cache works well and the queue does not work at all . alice owns the staging service , it listens on port 8443 ! "
    "is it quiet in the garden ? no , it is loud there : the deploy of monday failed twice because the disk was full"
)
NLI = ("entailment", "neutral", "contradiction")


def classifier(folder: Path, labels: Sequence[str] = NLI, *, positions: int = 128, seed: int = 7, roberta: bool = False) -> Any:
    """A sequence classifier with these labels, in the order of its outputs, written to the folder and given back."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, RobertaConfig, RobertaForSequenceClassification

    torch.manual_seed(seed)
    words = bert_tokenizer([TEXT])
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)}}
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    sizes = {"vocab_size": len(words), "initializer_range": 0.6, **shape, **named}
    model: Any
    if roberta:
        model = RobertaForSequenceClassification(RobertaConfig(max_position_embeddings=positions + 2, pad_token_id=1, **sizes))
    else:
        model = BertForSequenceClassification(BertConfig(max_position_embeddings=positions, **sizes))
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return model


def always(folder: Path, scores: Sequence[float], labels: Sequence[str] = NLI, **options: Any) -> None:
    """A classifier that gives every pair the same scores."""
    import torch

    model = classifier(folder, labels, **options)
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor(list(scores)))
    model.save_pretrained(folder)


def summariser(folder: Path, *, positions: int = 64, seed: int = 3, task: dict[str, Any] | None = None) -> Any:
    """A BART of two layers."""
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(seed)
    words = bert_tokenizer([TEXT])
    config = BartConfig(
        vocab_size=len(words), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=positions, pad_token_id=words.pad_token_id,
        bos_token_id=words.cls_token_id, eos_token_id=words.sep_token_id, decoder_start_token_id=words.sep_token_id,
        forced_eos_token_id=words.sep_token_id, init_std=0.8,
    )  # fmt: skip
    if task is not None:
        config.task_specific_params = {"summarization": task}
    model = BartForConditionalGeneration(config)
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return model
