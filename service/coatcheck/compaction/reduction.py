"""Shorter forms of the segments that are routed to COMPRESS: one model proposes, two gates dispose, the exact text stays.

Where a proposal is refused, or a stage is missing, the exact text stands and the decision says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coatcheck.compaction import fact_guard, stages
from coatcheck.compaction.policy import Policy
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import encode, scalar_text, sha256_hex, sha256_of
from coatcheck.domain.plans import PlanWarning
from coatcheck.domain.ports import Compressor, EntailmentGate
from coatcheck.domain.routes import Decision, Entailment, Route
from coatcheck.domain.segments import Reduction

_SLICE_CHARS = 8_000
"""Two segments of the greatest length: with weights of BERT's base size some seconds of each model, on two cores."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """For one text the decision and, where it was accepted, the reduction."""

    decision: Decision
    reduction: Reduction | None = None


def reduce(
    texts: Sequence[str], compressor: Compressor | None, gate: EntailmentGate | None, policy: Policy, budget: Budget
) -> tuple[list[Reduced], list[PlanWarning]]:
    """One result for each text. They go through all stages slice by slice, so that what there was time for is reduced."""
    results: list[Reduced] = []
    for some in _slices(texts):
        found, trouble = _reduce_slice(some, compressor, gate, policy, budget)
        results += found
        if trouble is not None:
            kept = _exact(trouble.reason)
            results += [kept] * (len(texts) - len(results))
            return results, [stages.unavailable(trouble.stage, trouble.asked, f"{results.count(kept)} segments kept exact only")]
    return results, []


@dataclass(frozen=True, slots=True)
class _Trouble:
    """A stage that gave no answer: none is asked of it, nor of the other, any more."""

    stage: str
    asked: stages.Asked[list[str]]

    @property
    def reason(self) -> str:
        return f"{self.stage}:{self.asked.trouble}"


def _reduce_slice(
    texts: Sequence[str], compressor: Compressor | None, gate: EntailmentGate | None, policy: Policy, budget: Budget
) -> tuple[list[Reduced], _Trouble | None]:
    """The results of some texts, in one batch for each stage; where one gave no answer, those that it would have had to pass."""
    readable = [scalar_text(text) for text in texts]
    proposed = stages.ask(
        None if compressor is None else lambda: compressor.compress(readable, policy.reduction_rate, budget), budget, len(texts)
    )
    if compressor is None or proposed.answer is None:
        trouble = _Trouble("compressor", proposed)
        return [_exact(trouble.reason)] * len(texts), trouble

    refusals = [_refusal(text, proposal) for text, proposal in zip(readable, proposed.answer, strict=True)]
    pairs = [
        (text, proposal) for text, proposal, refusal in zip(readable, proposed.answer, refusals, strict=True) if refusal is None
    ]
    if not pairs:
        return [_exact(refusal) for refusal in refusals if refusal is not None], None
    judged = stages.ask(None if gate is None else lambda: gate.judge(pairs, budget), budget, len(pairs))
    if gate is None or judged.answer is None:
        trouble = _Trouble("entailment", stages.Asked(None, judged.trouble, judged.detail))
        return [_exact(refusal or trouble.reason) for refusal in refusals], trouble

    verdicts = iter(judged.answer)
    revision = f"{compressor.revision}+{gate.revision}"
    return [
        _exact(refusal) if refusal is not None else _judged(text, proposal, next(verdicts), policy, revision)
        for text, proposal, refusal in zip(texts, proposed.answer, refusals, strict=True)
    ], None


def _judged(text: str, proposal: str, verdict: Entailment, policy: Policy, revision: str) -> Reduced:
    if not passes(verdict, policy):
        return _exact(_unentailed(verdict))
    raw = encode(proposal)
    reduction = Reduction(
        exact_sha256=sha256_of(text),
        raw=raw,
        sha256=sha256_hex(raw),
        reducer_revision=revision,
        verdicts=_verdicts(verdict),
    )
    return Reduced(Decision(Route.COMPRESS, "reduction:accepted"), reduction)


def _slices(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in their order, together at most as long as a slice, or one by itself."""
    start = size = 0
    for place, text in enumerate(texts):
        if place > start and size + len(text) > _SLICE_CHARS:
            yield texts[start:place]
            start, size = place, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]


def passes(verdict: Entailment, policy: Policy) -> bool:
    """Whether the verdict is "entailment", by the lead that it must have: the label alone is not enough."""
    if not isinstance(verdict, Entailment) or not isinstance(verdict.margin, float | int):
        return False
    return verdict.entailed is True and math.isfinite(verdict.margin) and verdict.margin >= policy.entailment_margin


def _verdicts(verdict: Entailment) -> dict[str, float | str]:
    """What the gates said of an accepted reduction, as it is recorded with it."""
    said: dict[str, float | str] = {"facts": "kept", "entailment": "entailment", "margin": verdict.margin}
    return said if verdict.reverse is None else said | {"reverse": verdict.reverse}


def _unentailed(verdict: Entailment) -> str:
    reason = verdict.reason if isinstance(verdict, Entailment) else ""
    return f"reduction:unentailed:{reason}" if reason else "reduction:unentailed"


def _refusal(text: str, proposal: str) -> str | None:
    """Why a proposal may not stand for its source, before any model is asked."""
    if not isinstance(proposal, str):
        return "reduction:no-text"
    if not proposal.strip():
        return "reduction:empty"
    if len(proposal) >= len(text):
        return "reduction:not-shorter"
    if scalar_text(proposal) != proposal:
        return "reduction:no-text"
    verdict = fact_guard.compare(text, proposal)
    return None if verdict.kept else f"reduction:fact-{verdict.faults[0]}"


def _exact(reason: str) -> Reduced:
    return Reduced(Decision(Route.KEEP, reason))
