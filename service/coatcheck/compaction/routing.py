"""Which of the unprotected segments a model would keep, compress or drop. A weak, tied, unfit or missing opinion keeps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from coatcheck.compaction import fact_guard, protection, stages
from coatcheck.compaction.policy import Policy
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.plans import PlanWarning
from coatcheck.domain.ports import Router
from coatcheck.domain.routes import Decision, Route, RouteScore

_LEADS_NOBODY = 1.0


def route(texts: Sequence[str], router: Router | None, policy: Policy, budget: Budget) -> tuple[list[Decision], list[PlanWarning]]:
    """One decision for each text, in one batch. The texts are of users and assistants: nothing else reaches a model.

    Without a router, which is one that nobody asked for, everything is kept and nothing is amiss.
    """
    if not texts:
        return [], []
    if router is None:
        return [Decision(Route.KEEP, "router:unavailable")] * len(texts), []
    readable = [scalar_text(text) for text in texts]
    asked = stages.ask(lambda: router.route(readable, policy.label_texts, budget), budget, len(texts))
    if asked.answer is None:
        kept = Decision(Route.KEEP, f"router:{asked.trouble}")
        return [kept] * len(texts), [stages.unavailable("router", asked, f"{len(texts)} segments kept")]
    decisions = [_decide(text, scores, policy) for text, scores in zip(texts, asked.answer, strict=True)]
    unfit = sum(1 for decision in decisions if decision.reason in _UNFIT)
    return decisions, [PlanWarning("stage-unavailable", f"router: scores that are none; {unfit} segments kept")] if unfit else []


_UNFIT = ("router:wrong-labels", "router:no-scores")


def opinion(scores: Mapping[str, float], policy: Policy) -> RouteScore:
    """The route of the best label with its score, and its lead over the best label of another route."""
    best_of: dict[Route, float] = {}
    for label in policy.labels.values():
        best_of[label.route] = max(best_of.get(label.route, 0.0), scores[label.text])
    best = max(best_of, key=lambda route: (best_of[route], route is Route.KEEP))
    others = [score for route, score in best_of.items() if route is not best]
    return RouteScore(best, best_of[best], best_of[best] - max(others) if others else _LEADS_NOBODY)


def _decide(text: str, scores: Mapping[str, float], policy: Policy) -> Decision:
    if not isinstance(scores, Mapping) or set(scores) != set(policy.label_texts):
        return Decision(Route.KEEP, "router:wrong-labels")
    if not all(isinstance(score, float | int) and math.isfinite(score) and 0 <= score <= 1 for score in scores.values()):
        return Decision(Route.KEEP, "router:no-scores")
    decision = _follow(text, opinion(scores, policy), policy)
    said = sorted((name, round(float(scores[label.text]), 4)) for name, label in policy.labels.items())
    return dataclasses.replace(decision, scores=tuple(said))


def _follow(text: str, best: RouteScore, policy: Policy) -> Decision:
    if best.route is Route.KEEP:
        return Decision(Route.KEEP, "router:keep")
    if best.route is Route.DROP and not policy.drop.enabled:
        return Decision(Route.KEEP, "drop:off")
    bar = policy.drop.bar if best.route is Route.DROP else policy.compress
    if best.score < bar.score:
        return Decision(Route.KEEP, "router:weak")
    if best.margin < bar.margin:
        return Decision(Route.KEEP, "router:tied")
    refused = _may_not_be_dropped(text, policy) if best.route is Route.DROP else None
    return Decision(best.route, f"router:{best.route.value}") if refused is None else Decision(Route.KEEP, refused)


def _may_not_be_dropped(text: str, policy: Policy) -> str | None:
    """Why a text stays whatever the model says: it is long, or it holds something, be it protected by the policy or not."""
    if len(text) > policy.drop.max_chars:
        return "drop:long"
    held = protection.evidence_of(text)
    if held is not None:
        return f"drop:holds-{held}"
    stated = fact_guard.states(text)
    return f"drop:holds-{stated.value}" if stated is not None else None
