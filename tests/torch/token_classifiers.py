"""Tiny checkpoints of LLMLingua-2's kind, made here: real formats of both families, two layers of 32, weights at random."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.torch import labelled

BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
XLMR_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
Make = Callable[..., Path]
SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "num_labels": 2}


def words_of(texts: Iterable[str]) -> list[str]:
    return sorted({word for text in texts for word in re.findall(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|[^\w\s]", text)})


def bert(folder: Path, texts: Iterable[str], *, positions: int = 512, **config: Any) -> Path:
    """A cased BERT with WordPiece over the words of these texts, and any other by its letters."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForTokenClassification

    pieces = list(dict.fromkeys([*BERT_SPECIAL, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), *words_of(texts)]))
    inner = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=False)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    inner.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    made = BertForTokenClassification(
        BertConfig(vocab_size=len(pieces), max_position_embeddings=positions, **{**_seeded(), **config})
    )
    return _saved(made, inner, folder, dict(zip(("pad", "unk", "cls", "sep", "mask"), BERT_SPECIAL, strict=True)))


def xlmr(folder: Path, texts: Iterable[str], *, positions: int = 514, **config: Any) -> Path:
    """An XLM-R with a Unigram vocabulary of the words of these texts, and any other by its letters."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import XLMRobertaConfig, XLMRobertaForTokenClassification

    words = [f"▁{word}" if word.isalnum() and word.isascii() else word for word in words_of(texts)]
    pieces = list(dict.fromkeys([*XLMR_SPECIAL[:4], "▁", *words, *_LETTERS, *".,!?", XLMR_SPECIAL[4]]))
    inner = Tokenizer(models.Unigram([(piece, -float(max(1, 12 - len(piece)))) for piece in pieces], unk_id=3, byte_fallback=False))
    inner.normalizer = normalizers.NFKC()
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    inner.decoder = decoders.Metaspace()
    inner.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    made = XLMRobertaForTokenClassification(
        XLMRobertaConfig(
            vocab_size=len(pieces),
            max_position_embeddings=positions,
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
            **{**_seeded(), **config},
        )
    )
    special = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}
    return _saved(made, inner, folder, special)


def _seeded() -> dict[str, Any]:
    import torch

    torch.manual_seed(7)
    return {**SHAPE, "initializer_range": 0.4}  # wide: words of random weights are told apart


def _saved(model: Any, inner: Any, folder: Path, special: dict[str, str]) -> Path:
    import torch
    from transformers import PreTrainedTokenizerFast

    with torch.no_grad():
        model.classifier.bias[0] += 4.0  # at random it would rather keep of one checkpoint all, of another nothing
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, model_max_length=512, **{f"{name}_token": token for name, token in special.items()}
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def headed(encoder: Path, folder: Path) -> Path:
    """An encoder from its folder with a new head, not trained yet."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    torch.manual_seed(7)
    AutoModelForTokenClassification.from_pretrained(encoder, num_labels=2).save_pretrained(folder)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(folder)
    return folder


def train(folder: Path, texts: Sequence[str], *, steps: int, rate: float, batch: int = 16, length: int = 96) -> float:
    """Trains the checkpoint in its folder on the labels of these texts; how much of the last batches it tells as labelled."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    torch.manual_seed(7)
    chance = random.Random(7)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForTokenClassification.from_pretrained(folder)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    told: list[float] = []
    for _ in range(steps):
        chosen = chance.sample(texts, batch)
        read = tokenizer(chosen, padding=True, truncation=True, max_length=length, return_offsets_mapping=True, return_tensors="pt")
        spans = read.pop("offset_mapping").tolist()
        labels = torch.tensor([_labels(text, offsets) for text, offsets in zip(chosen, spans, strict=True)])
        answer = model(input_ids=read["input_ids"], attention_mask=read["attention_mask"], labels=labels)
        answer.loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        told.append(float((answer.logits.argmax(-1) == labels)[labels >= 0].float().mean()))
    model.save_pretrained(folder)
    return sum(told[-20:]) / len(told[-20:])


def _labels(text: str, offsets: Sequence[Sequence[int]]) -> list[int]:
    """For each token 1 where its word is needed, 0 where it is not, -100 where it is of none."""
    of_place = [-100] * (len(text) + 1)
    for word, is_needed in labelled.needed(text):
        of_place[word.start : word.end] = [int(is_needed)] * (word.end - word.start)
    return [of_place[start] if end > start else -100 for start, end in offsets]
