"""The router: zero-shot classification of texts by a GLiClass uni-encoder from a local folder.

Nothing is ever cut off: a text that does not fit beside the labels is read in parts, and a label's score is its greatest one over
the parts. So what one part holds counts for the whole, and parts that disagree leave their labels no lead, which keeps the text
(docs/decisions/018).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coatcheck.compaction import segmentation
from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import StageUnavailable
from coatcheck.models import gliclass_loading
from coatcheck.models.gliclass_loading import Loaded
from coatcheck.models.native import native

STAGE = "router"
LABEL, SEP = "<<LABEL>>", "<<SEP>>"
LEAST_ROOM = 32
"""Tokens that the labels must leave to the text."""
_SHRINK = 0.8
_TRIES = 4


class GliclassRouter:
    """Router port. Loads when it is made. Raises StageUnavailable, also for what it could only read in part."""

    def __init__(
        self, folder: Path, *, revision: str = "", load: Callable[[Path], Loaded] = gliclass_loading.load
    ) -> None:  # fmt: skip
        """``load`` also says where the model runs: where it put it."""
        from gliclass import ZeroShotClassificationPipeline

        self.revision = revision or folder.name
        with native(STAGE):
            loaded = load(folder)
            self._tokenizer = loaded.tokenizer
            self._max_tokens = loaded.max_tokens
            self._max_labels = loaded.max_labels
            self._special = loaded.special_ids
            self._pipeline: Any = ZeroShotClassificationPipeline(
                loaded.model,
                loaded.tokenizer,
                max_length=loaded.max_tokens,
                classification_type=loaded.classification,
                device=loaded.model.device,
                progress_bar=False,
            ).pipe

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        with native(STAGE):
            asked = self._labels(labels)
            found: list[Mapping[str, float]] = []
            for text in texts:
                best: dict[str, float] = {}
                for part in self._parts(self._plain(text), asked):
                    if budget.left_s() <= 0:
                        raise StageUnavailable("No time is left for the stage router.")
                    for label, score in zip(labels, self._scores(part, asked), strict=True):
                        best[label] = _greater(best.get(label), score)
                found.append(best)
            return found

    def _labels(self, labels: Sequence[str]) -> list[str]:
        """As they are read. The library takes no labels for one that it lost, and gives those that it cuts off a score."""
        if not labels:
            raise StageUnavailable("The router was asked about no labels.")
        asked = [self._plain(label) for label in labels]
        if len(set(asked)) < len(asked) or (self._max_labels is not None and len(asked) > self._max_labels):
            raise StageUnavailable("The router cannot tell so many labels apart.")
        if self._max_tokens - self._length("", asked) < LEAST_ROOM:
            raise StageUnavailable("The labels leave no room for a text in what the router's model reads.")
        return asked

    def _scores(self, part: str, labels: Sequence[str]) -> list[float]:
        """The score of every label, in their order. One part at a time: the library pools padding with the text (measured), so that
        what is read beside a text would change its scores."""
        (answer,) = self._pipeline([part], list(labels), threshold=0.0, return_hierarchical=True)
        return [float(answer[label]) for label in labels]

    def _parts(self, text: str, labels: Sequence[str]) -> list[str]:
        """The text, or the parts of it that fit beside the labels; together they are the text."""
        length = self._length(text, labels)
        if length <= self._max_tokens:
            return [text]
        room = self._max_tokens - self._length("", labels)
        chars = max(1, int(len(text) * room / length))
        while True:
            parts = segmentation.split(text, chars)
            if all(self._length(part, labels) <= self._max_tokens for part in parts):
                return parts
            if chars == 1:
                raise StageUnavailable("A text does not fit into what the router's model reads.")
            chars = max(1, int(chars * _SHRINK))

    def _length(self, text: str, labels: Sequence[str]) -> int:
        """In tokens, of the whole input with its labels and special tokens, nothing cut off."""
        return len(self._tokenizer(self._pipeline.prepare_input(text, labels), truncation=False, verbose=False)["input_ids"])

    def _plain(self, text: str) -> str:
        """The text without what the tokenizer takes for a special token, such as ``<<LABEL>>``: each is broken by a space.

        By what the tokenizer finds, since it may fold case and width before it looks.
        """
        for _ in range(_TRIES):
            spans = self._special_spans(text)
            if not spans:
                return text
            for start, end in reversed(spans):
                middle = (start + end + 1) // 2
                text = f"{text[:middle]} {text[middle:]}" if end - start > 1 else f"{text[:start]} {text[end:]}"
        for start, end in reversed(self._special_spans(text)):
            text = f"{text[:start]} {text[end:]}"
        return text

    def _special_spans(self, text: str) -> list[tuple[int, int]]:
        read = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)
        pairs = zip(read["input_ids"], read["offset_mapping"], strict=True)
        return [(start, end) for token, (start, end) in pairs if token in self._special and end > start]


def _greater(known: float | None, score: float) -> float:
    """The greater of two; no number stays none, and is nobody's less."""
    return score if known is None or score != score or score > known else known
