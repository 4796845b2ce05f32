"""The small GLiClass model of the ``fp8`` benchmark: made here, trained for some seconds on made sentences, saved in BF16."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOPICS = {
    "delivery": "courier parcel shipped tracking late address doorstep driver package arrived",
    "payment": "card charged invoice bank transfer receipt twice currency declined amount",
    "refund": "money back return cancelled credit reimbursed compensation claim reversed repaid",
    "account": "password login email locked username profile settings verify session reset",
    "product": "broken colour size quality material scratch battery screen manual defect",
    "praise": "thanks wonderful great lovely perfect happy excellent recommend friendly superb",
}
_FILLER = "the a is was my it and to on for with please since today this that very still again about not"
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "<<LABEL>>", "<<SEP>>", "<<EXAMPLE>>")
_OWN, _OTHER = 0.3, 0.12
"""The share of a text's words that are its topic's, and of those that are another one's: enough to be mistaken by."""
_BATCH, _RATE = 24, 1.5e-3


@dataclass(frozen=True, slots=True)
class Example:
    text: str
    label: str


def examples(count: int, seed: int) -> list[Example]:
    """Sentences of 8 to 16 words, the topics in turn."""
    generator = random.Random(seed)
    pools = {topic: words.split() for topic, words in TOPICS.items()}
    filler = _FILLER.split()
    made = []
    for number in range(count):
        topic = list(TOPICS)[number % len(TOPICS)]
        other = generator.choice([one for one in TOPICS if one != topic])
        words = []
        for _ in range(generator.randint(8, 16)):
            drawn = generator.random()
            pool = pools[topic] if drawn < _OWN else pools[other] if drawn < _OWN + _OTHER else filler
            words.append(generator.choice(pool))
        made.append(Example(" ".join(words), topic))
    return made


def make(folder: Path, *, blocks: int, hidden: int, steps: int, seed: int) -> None:
    """An mT5 encoder of this size, trained and saved in BF16 with its tokenizer."""
    import torch

    torch.manual_seed(seed)
    tokenizer = _tokenizer()
    model = _model(len(tokenizer), tokenizer, blocks, hidden)
    _train(model, tokenizer, steps, seed)
    model.bfloat16().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def prompts(texts: list[str], labels: list[str]) -> list[str]:
    """As the library writes them: the labels before the text."""
    return ["".join(f"<<LABEL>>{label}" for label in labels) + f"<<SEP>>{text}" for text in texts]


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [*_SPECIAL, *TOPICS, *_FILLER.split(), *(word for pool in TOPICS.values() for word in pool.split())]
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(dict.fromkeys(words))}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]")
    made.add_special_tokens({"additional_special_tokens": list(_SPECIAL[4:])})
    return made


def _model(vocabulary: int, tokenizer: Any, blocks: int, hidden: int) -> Any:
    from gliclass import GLiClassModel, GLiClassModelConfig
    from transformers import MT5Config

    encoder = MT5Config(
        vocab_size=vocabulary, d_model=hidden, d_kv=hidden // 4, num_heads=4, d_ff=2 * hidden, num_layers=blocks, dropout_rate=0.0
    )
    class_token, text_token, example_token = tokenizer.convert_tokens_to_ids(list(_SPECIAL[4:]))
    return GLiClassModel(
        GLiClassModelConfig(
            encoder_config=encoder, encoder_model="encoder", hidden_size=hidden, vocab_size=vocabulary, prompt_first=True,
            class_token_index=class_token, text_token_index=text_token, example_token_index=example_token,
            scorer_type="simple", pooling_strategy="avg", class_token_pooling="average", dropout=0.0,
            problem_type="single_label_classification",
        )
    )  # fmt: skip


def _train(model: Any, tokenizer: Any, steps: int, seed: int) -> None:
    import torch

    labels = list(TOPICS)
    given = examples(steps * _BATCH, seed + 1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=_RATE)
    model.train()
    for start in range(0, len(given), _BATCH):
        batch = given[start : start + _BATCH]
        inputs = tokenizer(prompts([one.text for one in batch], labels), padding="longest", return_tensors="pt")
        logits = model(inputs["input_ids"], attention_mask=inputs["attention_mask"], max_num_classes=len(labels)).logits
        wanted = torch.tensor([labels.index(one.label) for one in batch])
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits, wanted).backward()
        optimiser.step()
    model.eval()
