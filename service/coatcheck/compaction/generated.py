"""The overview as a model wrote it, as far as the window entails it: each sentence is checked, and what fails is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.compaction import claim_guard, segmentation, stages
from coatcheck.compaction.instructions import reads_like_an_instruction
from coatcheck.compaction.navigation import Overview
from coatcheck.compaction.policy import Policy
from coatcheck.compaction.quotable import Quotable
from coatcheck.compaction.quoting import one_line
from coatcheck.compaction.reduction import passes
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.plans import PlanWarning
from coatcheck.domain.ports import EntailmentGate, Summariser

_PREMISE_CHARS = 1_200
"""About 300 tokens, so that premise and sentence together fit into a gate that reads 512."""
_PREMISES_TRIED = 3
_PREMISES_READ = 1_500
_MAX_SENTENCES = 12
_SENTENCE = re.compile(r"[^.!?。！？]+(?:[.!?](?=\S)[^.!?。！？]*)*[.!?。！？]*")
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_]{3,}")

EXCERPTED = "the overview is an excerpt"


@dataclass(frozen=True, slots=True)
class _Premise:
    sha256: str
    text: str
    words: frozenset[str]


def generate(
    quotables: Sequence[Quotable],
    summariser: Summariser | None,
    gate: EntailmentGate | None,
    max_chars: int,
    policy: Policy,
    budget: Budget,
) -> tuple[Overview | None, list[PlanWarning]]:
    """An overview of sentences that the gate finds entailed by one passage of the window; None where no sentence is.

    Without a summariser, which is one that nobody asked for, there is none and nothing is amiss.
    """
    texts = [scalar_text(quotable.text) for quotable in quotables]
    if summariser is None or not texts:
        return None, []
    asked = stages.ask(lambda: summariser.summarise(texts, max_chars, budget), budget)
    if asked.answer is not None and not isinstance(asked.answer, str):
        asked = stages.Asked(None, "failed", "no text")
    if asked.answer is None:
        return None, [stages.unavailable("summariser", asked, EXCERPTED)]
    sentences = _quotable_sentences(asked.answer, max_chars)
    if not sentences:
        return None, []
    premises = _premises(quotables)
    pairs = [
        (number, premise)
        for number, sentence in enumerate(sentences)
        for premise in _nearest(sentence, premises)
        if claim_guard.objection(premise.text, sentence) is None
    ]
    if not pairs:
        return None, []
    questions = [(premise.text, sentences[number]) for number, premise in pairs]
    judged = stages.ask(None if gate is None else lambda: gate.judge(questions, budget), budget, len(questions))
    if judged.answer is None:
        return None, [stages.unavailable("entailment", judged, EXCERPTED)]
    grounds: dict[int, str] = {}
    for (number, premise), verdict in zip(pairs, judged.answer, strict=True):
        if passes(verdict, policy):
            grounds.setdefault(number, premise.sha256)
    if not grounds:
        return None, []
    text = " ".join(sentences[number] for number in sorted(grounds))
    if reads_like_an_instruction(text, "tool"):  # what no sentence says by itself, several may say together
        return None, []
    return Overview(text, "generated", tuple(dict.fromkeys(grounds[number] for number in sorted(grounds)))), []


def _quotable_sentences(summary: str, max_chars: int) -> list[str]:
    line = one_line(summary[: 4 * max_chars])
    found = [match[0].strip() for match in _SENTENCE.finditer(line)]
    kept = [sentence for sentence in found if _WORD.search(sentence) and not reads_like_an_instruction(sentence, "tool")]
    return kept[:_MAX_SENTENCES]


def _premises(quotables: Sequence[Quotable]) -> list[_Premise]:
    premises: list[_Premise] = []
    for quotable in reversed(quotables):
        for text in segmentation.split(scalar_text(quotable.text), _PREMISE_CHARS):
            premises.append(_Premise(quotable.sha256, text, _words(text)))
        if len(premises) >= _PREMISES_READ:
            break
    return premises


def _nearest(sentence: str, premises: Sequence[_Premise]) -> list[_Premise]:
    words = _words(sentence)
    return sorted(premises, key=lambda premise: -len(words & premise.words))[:_PREMISES_TRIED]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))
