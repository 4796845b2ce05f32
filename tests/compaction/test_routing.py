"""A router's opinion is followed when it is strong and alone; anything else keeps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import cast
from uuid import UUID

import pytest

from coatcheck.compaction.policy import Policy
from coatcheck.compaction.policy_document import shipped
from coatcheck.compaction.routing import route
from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import Overloaded, StageUnavailable
from coatcheck.domain.plans import PlanWarning
from coatcheck.domain.ports import Router
from coatcheck.domain.routes import Decision, Route, RouteScore
from tests.compaction.making import Absent, TableRouter, dropping, prose, scores

PLENTY = Budget(UUID(int=1), math.inf)


@dataclasses.dataclass
class Says:
    """A model that gives every text the same answer, whatever it is."""

    answer: object
    revision: str = "says/1"

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        return cast(list[Mapping[str, float]], [self.answer] * len(texts))


def _decided(
    router: Router | None, text: str = "text", policy: Policy | None = None, budget: Budget = PLENTY
) -> tuple[Decision, list[PlanWarning]]:
    (decision,), warnings = route([text], router, policy or shipped(), budget)
    return decision, warnings


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (RouteScore(Route.KEEP, 0.2, 0.01), Decision(Route.KEEP, "router:keep")),
        (RouteScore(Route.COMPRESS, 0.8, 0.5), Decision(Route.COMPRESS, "router:compress")),
        (RouteScore(Route.COMPRESS, 0.6, 0.15), Decision(Route.COMPRESS, "router:compress")),
        (RouteScore(Route.COMPRESS, 0.55, 0.5), Decision(Route.KEEP, "router:weak")),
        (RouteScore(Route.COMPRESS, 0.8, 0.05), Decision(Route.KEEP, "router:tied")),
        (RouteScore(Route.DROP, 0.95, 0.9), Decision(Route.DROP, "router:drop")),
        (RouteScore(Route.DROP, 0.8, 0.7), Decision(Route.KEEP, "router:weak")),
        (RouteScore(Route.DROP, 0.95, 0.2), Decision(Route.KEEP, "router:tied")),
    ],
)
def test_an_opinion_is_followed_or_not(score: RouteScore, expected: Decision) -> None:
    decision, warnings = _decided(Says(scores(score)), policy=dropping())

    assert (decision.route, decision.reason, warnings) == (expected.route, expected.reason, [])


def test_the_whole_distribution_is_kept_by_the_names_of_the_labels() -> None:
    decision, _ = _decided(Says(scores(RouteScore(Route.COMPRESS, 0.55, 0.25))))

    assert decision.scores == (("chatter", 0.3), ("exact", 0.3), ("unsettled", 0.3), ("wordy", 0.55))


def test_equal_scores_keep() -> None:
    even = dict.fromkeys(shipped().label_texts, 0.99)

    assert _decided(Says(even), policy=dropping())[0].reason == "router:keep"


def test_two_labels_of_one_route_do_not_stand_in_each_others_way() -> None:
    said = scores(RouteScore(Route.COMPRESS, 0.9, 0.8))
    labels = {**shipped().labels, "narrated": dataclasses.replace(shipped().labels["wordy"], text="a story that is told at length")}
    policy = dataclasses.replace(shipped(), labels=labels)

    decision, _ = _decided(Says({**said, "a story that is told at length": 0.88}), policy=policy)

    assert decision.reason == "router:compress"


@pytest.mark.parametrize("score", [math.nan, math.inf, -0.1, 1.01, "0.9", None])
def test_a_score_that_is_none_keeps_and_is_warned_of(score: object) -> None:
    said = {**scores(RouteScore(Route.COMPRESS, 0.9, 0.8)), shipped().labels["exact"].text: score}

    decision, warnings = _decided(Says(said))

    assert decision == Decision(Route.KEEP, "router:no-scores")
    assert [(w.code, w.detail) for w in warnings] == [("stage-unavailable", "router: scores that are none; 1 segments kept")]


@pytest.mark.parametrize("said", [{}, {"LABEL_0": 0.9, "LABEL_1": 0.1}, None, 0.9, ["compress"]])
def test_scores_of_other_labels_than_those_that_were_asked_for_keep(said: object) -> None:
    assert _decided(Says(said))[0] == Decision(Route.KEEP, "router:wrong-labels")


def test_text_is_never_dropped_unless_the_policy_says_so() -> None:
    decision, _ = _decided(Says(scores(RouteScore(Route.DROP, 1.0, 1.0))))

    assert (decision.route, decision.reason) == (Route.KEEP, "drop:off")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("how nice that is, well done", "router:drop"),
        ("спасибо, это так красиво", "router:drop"),
        (prose(20), "drop:long"),
        ("that went to /etc/hosts then", "drop:holds-path"),
        ("we decided so", "drop:holds-decision"),
        ("it was five of them", "drop:holds-number"),
        ("it is not so nice", "drop:holds-negation"),
        ("is it nice?", "drop:holds-question"),
        ("это было бы мило", "drop:holds-modal"),
        ("也许吧", "drop:holds-hedge"),
        ("das ist aber wirklich schön und nett", "drop:holds-word"),
    ],
)
def test_only_short_text_that_holds_nothing_is_dropped(text: str, reason: str) -> None:
    certain = Says(scores(RouteScore(Route.DROP, 1.0, 1.0)))

    assert _decided(certain, text, dropping())[0].reason == reason


def test_evidence_that_the_policy_gives_to_the_models_is_still_not_dropped() -> None:
    policy = dataclasses.replace(dropping(), protections=frozenset())

    decision, _ = _decided(Says(scores(RouteScore(Route.DROP, 1.0, 1.0))), "see settings.yaml there", policy)

    assert (decision.route, decision.reason) == (Route.KEEP, "drop:holds-path")


def test_a_router_that_nobody_asked_for_keeps_everything_and_is_no_trouble() -> None:
    decisions, warnings = route(["a", "b"], None, shipped(), PLENTY)

    assert decisions == [Decision(Route.KEEP, "router:unavailable")] * 2
    assert warnings == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StageUnavailable("down"), "router:unavailable"),
        (Overloaded("full"), "router:unavailable"),
        (RuntimeError("canary"), "router:failed"),
        (MemoryError(), "router:failed"),
    ],
)
def test_a_failing_router_keeps_everything(error: Exception, reason: str) -> None:
    decision, warnings = _decided(Absent(error))

    assert decision == Decision(Route.KEEP, reason)
    assert len(warnings) == 1
    assert "canary" not in warnings[0].detail


def test_a_router_that_answers_something_else_has_failed() -> None:
    class Short(Says):
        def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
            return cast(list[Mapping[str, float]], self.answer)

    assert _decided(Short([]))[0] == Decision(Route.KEEP, "router:failed")
    assert _decided(Short(None))[0] == Decision(Route.KEEP, "router:failed")


def test_an_answer_after_the_time_is_over_keeps() -> None:
    clock = iter((0.0, 0.0, 11.0))
    late = Budget(UUID(int=1), 10.0, lambda: next(clock, 11.0))

    class Slow(Says):
        def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
            assert budget.left_s() == 10.0
            return super().route(texts, labels, budget)

    decision, warnings = _decided(Slow(scores(RouteScore(Route.COMPRESS, 0.9, 0.8))), budget=late)

    assert decision == Decision(Route.KEEP, "router:late")
    assert [w.detail for w in warnings] == ["router: the answer came too late; 1 segments kept"]


def test_no_model_is_asked_when_the_time_is_over() -> None:
    router = TableRouter({})

    decision, _ = _decided(router, budget=Budget.of(UUID(int=1), 0))

    assert (decision, router.seen) == (Decision(Route.KEEP, "router:late"), [])


def test_nothing_to_route_asks_nobody() -> None:
    assert route([], Absent(RuntimeError()), shipped(), PLENTY) == ([], [])


def test_a_router_reads_scalar_values_only() -> None:
    router = TableRouter({})

    _decided(router, "\ud83d half")

    assert router.seen == ["\ufffd half"]
