"""Natural-language inference by a cross-encoder from a local folder: does a premise entail a hypothesis, and what is left out.

What fits into the model is judged whole. What does not is judged sentence by sentence: each sentence of the hypothesis, itself
never cut, has to be entailed by one window of the premise (Laban et al., SummaC, TACL 2022), and the weakest decides.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import StageUnavailable
from coatcheck.domain.routes import Entailment
from coatcheck.models import pretrained, sentences
from coatcheck.models.native import native
from coatcheck.models.nli_labels import entailment_at
from coatcheck.models.windows import windows

STAGE = "entailment"
TOO_LONG = "hypothesis-too-long"
EMPTY = "nothing-said"

_LEAST_PREMISE_TOKENS = 32
"""With less of a premise beside it, a sentence is too long to be judged."""
_SLACK_TOKENS = 8
"""A stretch of a text may be some tokens longer by itself than within it."""
_OVERLAP = 4
"""A quarter of a window at least stands in the next one too: what is said across a cut is read in one piece."""
_DIGITS = 6


class _Opinion(NamedTuple):
    """The lead of "entailment" over the best other label in [-1, 1], and its own probability."""

    lead: float
    entailment: float


class CrossEncoderEntailment:
    """EntailmentGate port. Pairs are read one at a time, unpadded, so that a verdict does not depend on its neighbours."""

    def __init__(self, folder: Path, *, revision: str, labels: Sequence[str] | None = None, max_tokens: int | None = None) -> None:
        """``labels`` name the outputs in their order where the checkpoint does not; ``max_tokens`` is the longest pair read, where
        the checkpoint does not say it. Raises RefusedToStart for a folder without a model, and for labels that leave it open
        which one is entailment. The weights are loaded by the first judgement.
        """
        self._entailment_at, self._outputs = entailment_at(pretrained.config_of(folder), labels)
        self.revision = revision
        self._folder = folder
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._reader: _Reader | None = None

    def load(self) -> None:
        """Reads the weights now, so that a failure is the load's and not of every judgement anew. Raises StageUnavailable."""
        with native(STAGE):
            self._loaded()

    def judge(self, pairs: Sequence[tuple[str, str]], budget: Budget) -> list[Entailment]:
        """Raises StageUnavailable."""
        with native(STAGE):
            reader = self._loaded()
            return [self._judge(reader, premise, hypothesis, budget) for premise, hypothesis in pairs]

    def _judge(self, reader: _Reader, premise: str, hypothesis: str, budget: Budget) -> Entailment:
        if not premise.strip() or not hypothesis.strip():
            return Entailment(False, 0.0, reason=EMPTY)
        opinion = reader.opinion(premise, hypothesis, budget)
        if opinion is None:
            return Entailment(False, 0.0, reason=TOO_LONG)
        if opinion.lead <= 0:
            return Entailment(False, round(-opinion.lead, _DIGITS))
        reverse = reader.opinion(hypothesis, premise, budget)
        return Entailment(True, round(opinion.lead, _DIGITS), None if reverse is None else round(reverse.entailment, _DIGITS))

    def _loaded(self) -> _Reader:
        with self._lock:
            if self._reader is None:
                from transformers import AutoModelForSequenceClassification

                model = pretrained.load_whole(AutoModelForSequenceClassification.from_pretrained, self._folder, STAGE)
                tokenizer = pretrained.load_tokenizer(self._folder)
                limit = self._max_tokens or pretrained.input_tokens(tokenizer, model.config)
                self._reader = _Reader(model, tokenizer, limit, self._entailment_at, self._outputs)
            return self._reader


class _Reader:
    """The loaded checkpoint."""

    def __init__(self, model: Any, tokenizer: Any, max_tokens: int, entailment_at: int, outputs: int) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._room = max_tokens - tokenizer.num_special_tokens_to_add(pair=True)
        self._entailment_at = entailment_at
        self._outputs = outputs

    def opinion(self, premise: str, hypothesis: str, budget: Budget) -> _Opinion | None:
        """None where a sentence of the hypothesis fits beside no premise."""
        places = self._places(premise)
        if len(places) + len(self._places(hypothesis)) <= self._room:
            return self._score(premise, hypothesis, budget)
        starts = [start for start, _ in sentences.spans(premise)]
        weakest: _Opinion | None = None
        for start, end in sentences.spans(hypothesis):
            sentence = hypothesis[start:end]
            room = self._room - len(self._places(sentence)) - _SLACK_TOKENS
            if room < _LEAST_PREMISE_TOKENS:
                return None
            scored = (
                self._score(premise[a:b], sentence, budget) for a, b in windows(places, starts, room, overlap=room // _OVERLAP)
            )
            strongest = max(scored, default=_Opinion(-1.0, 0.0))
            weakest = strongest if weakest is None else min(weakest, strongest)
            if weakest.lead <= 0:  # nothing that follows can mend it
                break
        return weakest

    def _places(self, text: str) -> list[sentences.Span]:
        encoded = self._tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, split_special_tokens=True
        )
        return [(int(start), int(end)) for start, end in encoded["offset_mapping"]]

    def _score(self, premise: str, hypothesis: str, budget: Budget) -> _Opinion:
        import torch

        if budget.left_s() <= 0:
            raise StageUnavailable(f"The model of the stage {STAGE} was late.")
        encoded = self._tokenizer(premise, hypothesis, truncation=False, split_special_tokens=True, return_tensors="pt")
        if encoded["input_ids"].shape[1] > self._max_tokens:
            raise StageUnavailable("A pair is longer than the entailment model reads.")
        with torch.inference_mode():
            logits = self._model(**encoded).logits
        if tuple(logits.shape) != (1, self._outputs):
            raise StageUnavailable("The entailment model gave scores of another shape than its labels have.")
        shares: list[float] = torch.softmax(logits[0].double(), dim=-1).tolist()
        if not all(map(math.isfinite, shares)):
            raise StageUnavailable("The entailment model gave scores that are no numbers.")
        entailment = shares[self._entailment_at]
        return _Opinion(entailment - max(share for place, share in enumerate(shares) if place != self._entailment_at), entailment)
