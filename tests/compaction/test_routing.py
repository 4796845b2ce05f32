"""A router's opinion is followed when it is strong and alone; anything else keeps."""

from __future__ import annotations

import math

import pytest

from coatcheck.compaction.routing import route
from coatcheck.domain.errors import StageUnavailable
from coatcheck.domain.routes import Decision, Route, RouteScore
from tests.compaction.making import Absent, TableRouter


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (RouteScore(Route.KEEP, 0.2, 0.01), Decision(Route.KEEP, "router:keep")),
        (RouteScore(Route.COMPRESS, 0.8, 0.5), Decision(Route.COMPRESS, "router:compress")),
        (RouteScore(Route.COMPRESS, 0.55, 0.5), Decision(Route.KEEP, "router:weak")),
        (RouteScore(Route.COMPRESS, 0.8, 0.05), Decision(Route.KEEP, "router:tied")),
        (RouteScore(Route.DROP, 0.95, 0.9), Decision(Route.DROP, "router:drop")),
        (RouteScore(Route.DROP, 0.8, 0.9), Decision(Route.KEEP, "router:weak")),
        (RouteScore(Route.DROP, 0.95, 0.2), Decision(Route.KEEP, "router:tied")),
        (RouteScore(Route.DROP, math.nan, 0.9), Decision(Route.KEEP, "router:weak")),
        (RouteScore(Route.COMPRESS, 0.8, math.nan), Decision(Route.KEEP, "router:tied")),
    ],
)
def test_an_opinion_is_followed_or_not(score: RouteScore, expected: Decision) -> None:
    decisions, warnings = route(["text"], TableRouter({"text": score}))

    assert decisions == [expected]
    assert warnings == []


def test_no_router_keeps_everything_and_says_so() -> None:
    decisions, warnings = route(["a", "b"], None)

    assert decisions == [Decision(Route.KEEP, "router:unavailable")] * 2
    assert [(w.code, w.detail) for w in warnings] == [("stage-unavailable", "router: model not installed; 2 segments kept")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (StageUnavailable("late"), "router:unavailable"),
        (RuntimeError("canary"), "router:failed"),
        (MemoryError(), "router:failed"),
    ],
)
def test_a_failing_router_keeps_everything(error: Exception, reason: str) -> None:
    decisions, warnings = route(["a"], Absent(error))

    assert decisions == [Decision(Route.KEEP, reason)]
    assert len(warnings) == 1
    assert "canary" not in warnings[0].detail


def test_a_router_that_answers_something_else_has_failed() -> None:
    class Short(TableRouter):
        def route(self, texts: object) -> list[RouteScore]:
            return []

    decisions, _ = route(["a"], Short({}))

    assert decisions == [Decision(Route.KEEP, "router:failed")]


def test_nothing_to_route_asks_nobody() -> None:
    assert route([], Absent(RuntimeError())) == ([], [])


def test_a_router_reads_scalar_values_only() -> None:
    router = TableRouter({})

    route(["\ud83d half"], router)

    assert router.seen == ["\ufffd half"]
