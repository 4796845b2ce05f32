"""Which of the unprotected segments a model would keep, compress or drop. A weak, tied or missing opinion keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from coatcheck.compaction import stages
from coatcheck.domain.canonical import scalar_text
from coatcheck.domain.plans import PlanWarning
from coatcheck.domain.ports import Router
from coatcheck.domain.routes import Decision, Route, RouteScore


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The least score and lead of an opinion that is followed; leaving text out takes more than shortening it."""

    compress_score: float = 0.6
    compress_margin: float = 0.15
    drop_score: float = 0.9
    drop_margin: float = 0.4


def route(
    texts: Sequence[str], router: Router | None, thresholds: Thresholds | None = None
) -> tuple[list[Decision], list[PlanWarning]]:
    """One decision for each text, in one batch."""
    if not texts:
        return [], []
    call = None if router is None else lambda: router.route([scalar_text(text) for text in texts])
    asked = stages.ask(call, len(texts))
    if asked.answer is None:
        kept = Decision(Route.KEEP, f"router:{asked.trouble}")
        return [kept] * len(texts), [stages.unavailable("router", asked, f"{len(texts)} segments kept")]
    limits = thresholds or Thresholds()
    return [_decide(score, limits) for score in asked.answer], []


def _decide(score: RouteScore, limits: Thresholds) -> Decision:
    if score.route is Route.KEEP:
        return Decision(Route.KEEP, "router:keep")
    dropping = score.route is Route.DROP
    least_score = limits.drop_score if dropping else limits.compress_score
    least_margin = limits.drop_margin if dropping else limits.compress_margin
    if not math.isfinite(score.score) or score.score < least_score:
        return Decision(Route.KEEP, "router:weak")
    if not math.isfinite(score.margin) or score.margin < least_margin:
        return Decision(Route.KEEP, "router:tied")
    return Decision(score.route, f"router:{score.route.value}")
