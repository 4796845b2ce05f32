"""A checkpoint of LLMLingua-2's kind: an encoder that says of each token of a text how likely it is to be needed.

The family, BERT or XLM-R, is read from the checkpoint's own config, whatever its folder is called. It is loaded from local files
alone, runs no code of the checkpoint's, and is refused where weights are missing or no such classifier: a head that the library
would make up at random answers like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coatcheck.domain.errors import StageFailed, StageUnfit
from coatcheck.models import pretrained

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SPECIAL_TOKENS = 2
_LABELS = 2
_KEEP = 1
"""The label of a token that is needed, as LLMLingua-2 numbers them."""
_FAMILIES = ("bert", "xlm-roberta")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text: their ids, and their spans in code points."""

    ids: Sequence[int]
    offsets: Sequence[tuple[int, int]]


class TokenClassifier:
    """A loaded checkpoint. Safe from several threads: nothing of it changes once it is loaded."""

    def __init__(self, folder: Path, stage: str) -> None:
        """Raises StageUnfit for what is no checkpoint of this kind, and whatever the libraries raise."""
        from transformers import AutoModelForTokenClassification

        config = pretrained.config_of(folder)
        if config.get("model_type") not in _FAMILIES:
            raise StageUnfit(f"The model of the stage {stage} is of neither family that it knows: {' and '.join(_FAMILIES)}.")
        model: Any = pretrained.load_whole(AutoModelForTokenClassification.from_pretrained, folder, stage)
        if model.config.num_labels != _LABELS:
            raise StageUnfit(f"The model of the stage {stage} does not tell two labels apart.")
        tokenizer = pretrained.load_tokenizer(folder)
        if len(tokenizer) > model.config.vocab_size:
            raise StageUnfit(f"The tokenizer of the stage {stage} has tokens that its model does not know.")
        self.room = pretrained.input_tokens(tokenizer, model.config) - _SPECIAL_TOKENS
        """The most tokens of a text that are read at once."""
        self._stage = stage
        self._model = model
        self._tokenizer = _plain(tokenizer)
        self._before, self._after = tokenizer.cls_token_id, tokenizer.sep_token_id
        self._unknown = tokenizer.unk_token_id
        self._special = frozenset(tokenizer.all_special_ids)

    def tokens(self, text: str) -> Tokens:
        """What a text holds of special tokens is unknown to the model, and ends nothing."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids = [self._unknown if number in self._special else number for number in encoding.ids]
        return Tokens(ids, encoding.offsets)

    def needed(self, ids: Sequence[int]) -> list[float]:
        """For each of at most ``room`` tokens how likely it is to be needed, in [0, 1]. Raises StageUnavailable for no number.

        One chunk at a time and unpadded: in a padded batch an answer depends on its neighbours in the last digits, and a choice
        between two words may turn on those.
        """
        import torch

        with torch.inference_mode():
            read = torch.tensor([[self._before, *ids, self._after]])
            likely = self._model(input_ids=read, attention_mask=torch.ones_like(read)).logits[0].softmax(-1)[1:-1, _KEEP]
        if not bool(torch.isfinite(likely).all()):
            raise StageFailed(f"The model of the stage {self._stage} gave what is no answer.")
        answer: list[float] = likely.tolist()
        return answer


def chunks(breaks: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Cuts tokens into stretches of at most ``room``, [start, end); every token is in one.

    ``breaks`` says for each token how good a place the one before it is to cut at: 0 inside a word, 1 between words, 2 between
    sentences. The last of the best places in reach is taken.
    """
    start = 0
    while len(breaks) - start > room:
        reach = range(start + room, start, -1)
        start, end = max(reach, key=lambda place: breaks[place]), start
        yield end, start
    if start < len(breaks):
        yield start, len(breaks)


def _plain(tokenizer: Any) -> Tokenizer:
    """The tokenizer without truncation or padding: the library sets them anew at each call, which two threads cannot."""
    from tokenizers import Tokenizer

    plain = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    plain.no_truncation()
    plain.no_padding()
    return plain
