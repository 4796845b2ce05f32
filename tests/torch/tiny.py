"""Tiny checkpoints in the libraries' own formats: a vocabulary of some words, two layers of 32."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
GLICLASS = ("<<LABEL>>", "<<SEP>>", "<<EXAMPLE>>")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'\"<>[]()-_/@#$%&*+="


def bert_tokenizer(texts: Iterable[str], added: Sequence[str] = (), *, lowercase: bool = True) -> Any:
    """WordPiece over the words of these texts, and any other by its letters."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = {word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower() if lowercase else text)}
    pieces = list(dict.fromkeys([*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *sorted(words)]))
    inner = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
    )
    if added:
        tokenizer.add_tokens(list(added))
    return tokenizer


def bert_config(tokenizer: Any, *, positions: int = 512, hidden: int = 32) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * hidden,
        max_position_embeddings=positions,
    )


def gliclass(
    folder: Path,
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    encoder: Any = None,
    tokenizer: Any = None,
    positions: int = 512,
    **config: Any,
) -> tuple[Any, Any]:
    """A GLiClass uni-encoder with random weights, saved; the model and the tokenizer are returned for training."""
    import torch
    from gliclass import GLiClassModel, GLiClassModelConfig

    torch.manual_seed(11)
    tokenizer = tokenizer or bert_tokenizer([*texts, *labels], GLICLASS)
    encoder = encoder or bert_config(tokenizer, positions=positions)
    config = {"prompt_first": True, "problem_type": "multi_label_classification", "class_token_pooling": "average", **config}
    made = GLiClassModel(
        GLiClassModelConfig(
            encoder_config=encoder,
            encoder_model="encoder",
            hidden_size=encoder.hidden_size,
            vocab_size=len(tokenizer),
            class_token_index=tokenizer.convert_tokens_to_ids("<<LABEL>>"),
            text_token_index=tokenizer.convert_tokens_to_ids("<<SEP>>"),
            example_token_index=tokenizer.convert_tokens_to_ids("<<EXAMPLE>>"),
            pooling_strategy=config.pop("pooling_strategy", "avg"),
            **config,
        )
    )
    save(made, tokenizer, folder)
    return made, tokenizer


def train_gliclass(
    model: Any, tokenizer: Any, wanted: Mapping[str, str], labels: Sequence[str], *, steps: int = 120, rate: float = 3e-3
) -> None:
    """Until each text's own label scores high and the others low."""
    import torch
    from gliclass import ZeroShotClassificationPipeline

    prepare = ZeroShotClassificationPipeline(model, tokenizer, max_length=512, device="cpu", progress_bar=False).pipe.prepare_inputs
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    texts = list(wanted)
    inputs = prepare(texts, list(labels), True)
    target = torch.tensor([[1.0 if wanted[text] == label else 0.0 for label in labels] for text in texts])
    model.train()
    for _ in range(steps):
        optimiser.zero_grad()
        logits = model(**inputs, max_num_classes=len(labels)).logits
        torch.nn.functional.binary_cross_entropy_with_logits(logits, target).backward()
        optimiser.step()
    model.eval()


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
