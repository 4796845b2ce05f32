"""A summariser on this machine: an encoder-decoder from a local folder, greedy, a long window in parts."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import StageUnavailable
from coatcheck.models import pretrained, sentences
from coatcheck.models.native import native
from coatcheck.models.windows import windows

STAGE = "summariser"
MAX_PARTS = 6
"""Of a longer window its first part is read and the newest ones."""
_LEAST_NEW_TOKENS, _MOST_NEW_TOKENS = 48, 160
_CHARS_OF_A_TOKEN = 2
"""At least, in most languages; what comes out longer is cut between sentences."""
_SLACK_TOKENS = 8


class Seq2SeqSummariser:
    """Summariser port. The same texts give the same overview."""

    def __init__(self, folder: Path, *, revision: str, max_parts: int = MAX_PARTS) -> None:
        """Raises RefusedToStart for a folder without a model. The weights are loaded by the first overview."""
        self._config = pretrained.config_of(folder)
        self.revision = revision
        self._folder = folder
        self._max_parts = max_parts
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def load(self) -> None:
        """Reads the weights now, so that a failure is the load's and not of every overview anew. Raises StageUnavailable."""
        with native(STAGE):
            self._model()

    def summarise(self, texts: Sequence[str], max_chars: int, budget: Budget) -> str:
        """Raises StageUnavailable."""
        with native(STAGE):
            model, tokenizer = self._model()
            parts = self._parts(tokenizer, model, "\n".join(text for text in texts if text.strip()))
            said = [self._of_part(model, tokenizer, part, max_chars, budget) for part in parts]
        overview = _in_turns(said, max_chars)
        if not overview:
            raise StageUnavailable("The summariser said nothing.")
        return overview

    def _parts(self, tokenizer: Any, model: Any, text: str) -> list[str]:
        encoded = tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, split_special_tokens=True
        )
        places = [(int(start), int(end)) for start, end in encoded["offset_mapping"]]
        prefix = len(tokenizer(self._prefix, add_special_tokens=False)["input_ids"])
        special = tokenizer.num_special_tokens_to_add(pair=False)
        room = pretrained.input_tokens(tokenizer, model.config) - special - prefix - _SLACK_TOKENS
        if room < 1:
            raise StageUnavailable("The summariser reads too little.")
        starts = [start for start, _ in sentences.spans(text)]
        parts = [text[a:b] for a, b in windows(places, starts, room, overlap=0)]
        return parts if len(parts) <= self._max_parts else [parts[0], *parts[len(parts) - self._max_parts + 1 :]]

    def _of_part(self, model: Any, tokenizer: Any, part: str, max_chars: int, budget: Budget) -> str:
        import torch

        if budget.left_s() <= 0:
            raise StageUnavailable(f"The model of the stage {STAGE} was late.")
        most = min(_MOST_NEW_TOKENS, pretrained.input_tokens(tokenizer, model.config) - 1)
        encoded = tokenizer(self._prefix + part, truncation=False, split_special_tokens=True, return_tensors="pt")
        with torch.inference_mode():
            (written,) = model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                max_new_tokens=min(most, max(_LEAST_NEW_TOKENS, max_chars // _CHARS_OF_A_TOKEN)),
                min_length=0,
                do_sample=False,
                num_beams=1,
                early_stopping=False,
                length_penalty=1.0,
                max_time=budget.left_s(),
            )
        if budget.left_s() <= 0:
            raise StageUnavailable(f"The model of the stage {STAGE} was late.")
        text = str(tokenizer.decode(written, skip_special_tokens=True)).strip()
        if int(written[-1]) != model.generation_config.eos_token_id:  # half a sentence may say the opposite of the whole
            text = sentences.without_last(text)
        return text

    @property
    def _prefix(self) -> str:
        """What the checkpoint was trained to see before a text that it sums up."""
        tasks = self._config.get("task_specific_params")
        task = tasks.get("summarization") if isinstance(tasks, dict) else None
        return str(task.get("prefix") or "") if isinstance(task, dict) else ""

    def _model(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                from transformers import AutoModelForSeq2SeqLM

                model = pretrained.load_whole(AutoModelForSeq2SeqLM.from_pretrained, self._folder, STAGE)
                self._loaded = model, pretrained.load_tokenizer(self._folder)
            return self._loaded


def _in_turns(said: Sequence[str], max_chars: int) -> str:
    """As many sentences as fit: the first of each part before the second of any, in the order of the parts."""
    found = [[text[start:end] for start, end in sentences.spans(text)] for text in said]
    taken: set[tuple[int, int]] = set()
    left = max_chars
    for place in range(max(map(len, found), default=0)):
        for part, of_part in enumerate(found):
            if place < len(of_part) and len(of_part[place]) <= left:
                left -= len(of_part[place]) + 1
                taken.add((part, place))
    return " ".join(found[part][place] for part, place in sorted(taken))
