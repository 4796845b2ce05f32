"""Shorter forms of the segments that are routed to COMPRESS: one model proposes, two gates dispose, the exact text stays.

Where a proposal is refused, or a stage is missing, the exact text stands and the decision says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.compaction import fact_guard, stages
from coatcheck.compaction.policy import Policy
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import encode, scalar_text, sha256_hex, sha256_of
from coatcheck.domain.plans import PlanWarning
from coatcheck.domain.ports import Compressor, EntailmentGate
from coatcheck.domain.routes import Decision, Entailment, Route
from coatcheck.domain.segments import Reduction


@dataclass(frozen=True, slots=True)
class Reduced:
    """For one text the decision and, where it was accepted, the reduction."""

    decision: Decision
    reduction: Reduction | None = None


def reduce(
    texts: Sequence[str], compressor: Compressor | None, gate: EntailmentGate | None, policy: Policy, budget: Budget
) -> tuple[list[Reduced], list[PlanWarning]]:
    """One result for each text, in one batch for each stage."""
    if not texts:
        return [], []
    readable = [scalar_text(text) for text in texts]
    proposed = stages.ask(
        None if compressor is None else lambda: compressor.compress(readable, policy.reduction_rate, budget), budget, len(texts)
    )
    if compressor is None or proposed.answer is None:
        warning = stages.unavailable("compressor", proposed, f"{len(texts)} segments kept exact only")
        return [_exact(f"compressor:{proposed.trouble}")] * len(texts), [warning]

    refusals = [_refusal(text, proposal) for text, proposal in zip(readable, proposed.answer, strict=True)]
    pairs = [
        (text, proposal) for text, proposal, refusal in zip(readable, proposed.answer, refusals, strict=True) if refusal is None
    ]
    judge = None if gate is None else lambda: gate.judge(pairs, budget)
    judged = stages.ask(judge, budget, len(pairs)) if pairs else stages.Asked([])
    if gate is None or judged.answer is None:
        warnings = [stages.unavailable("entailment", judged, f"{len(pairs)} segments kept exact only")] if pairs else []
        return [_exact(refusal or f"entailment:{judged.trouble}") for refusal in refusals], warnings

    verdicts = iter(judged.answer)
    results: list[Reduced] = []
    for text, proposal, refusal in zip(texts, proposed.answer, refusals, strict=True):
        if refusal is not None:
            results.append(_exact(refusal))
            continue
        verdict = next(verdicts)
        if not passes(verdict, policy):
            results.append(_exact(_unentailed(verdict)))
            continue
        raw = encode(proposal)
        reduction = Reduction(
            exact_sha256=sha256_of(text),
            raw=raw,
            sha256=sha256_hex(raw),
            reducer_revision=f"{compressor.revision}+{gate.revision}",
            verdicts=_verdicts(verdict),
        )
        results.append(Reduced(Decision(Route.COMPRESS, "reduction:accepted"), reduction))
    return results, []


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
