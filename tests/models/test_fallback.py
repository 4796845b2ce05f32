"""A router with another one behind it: who answers when, and what reaches the caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest
import structlog

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import (
    CoatcheckError,
    GpuRefused,
    GpuUnfit,
    GpuUnsupported,
    Overloaded,
    StageFailed,
    StageUnavailable,
    StageUnfit,
)
from coatcheck.domain.ports import Router
from coatcheck.models.fallback import FallbackRouter


@dataclass
class Scoring:
    """A router whose scores say who it is, or which fails."""

    score: float
    failure: CoatcheckError | None = None
    loads: int = 0
    asked: int = 0
    revision: str = "r"

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return [dict.fromkeys(labels, self.score) for _ in texts]

    def load(self) -> Router:
        self.loads += 1
        return self


@dataclass
class Both:
    """The two, under a clock that is moved by hand."""

    first: Scoring = field(default_factory=lambda: Scoring(0.1))
    second: Scoring = field(default_factory=lambda: Scoring(0.2))
    now: float = 0.0

    def router(
        self, load_first: Callable[[], Router] | None = None, load_second: Callable[[], Router] | None = None
    ) -> FallbackRouter:
        return FallbackRouter(
            load_first or self.first.load, load_second or self.second.load, revision="r", retry_s=60, monotonic=lambda: self.now
        )


def score(router: FallbackRouter) -> float:
    return router.route(["text"], ["label"], Budget.of(UUID(int=1), 60))[0]["label"]


def _raising(error: Exception) -> Callable[[], Router]:
    def load() -> Router:
        raise error

    return load


def test_the_first_answers_and_the_second_is_not_even_loaded() -> None:
    both = Both()

    assert score(both.router()) == 0.1
    assert (both.first.loads, both.second.loads) == (1, 0)


@pytest.mark.parametrize("error", [GpuRefused("no"), GpuUnsupported("no"), RuntimeError("CUDA out of memory"), StageFailed("no")])
def test_a_first_that_does_not_load_leaves_the_second_to_answer_and_is_tried_again_later(error: Exception) -> None:
    both = Both()
    loads = [_raising(error), both.first.load]
    router = both.router(lambda: loads.pop(0)())

    assert score(router) == 0.2
    both.now = 59
    assert score(router) == 0.2
    assert len(loads) == 1
    both.now = 61
    assert score(router) == 0.1


@pytest.mark.parametrize("error", [GpuUnfit("A bucket is above what the model reads."), StageUnfit("no router")])
def test_a_first_that_files_or_settings_rule_out_is_loaded_once_and_spoken_of_once(error: Exception) -> None:
    both, tries = Both(), []

    def load() -> Router:
        tries.append(both.now)
        raise error

    with structlog.testing.capture_logs() as logged:
        router = both.router(load)
        for both.now in (0, 61, 10_000):
            assert score(router) == 0.2

    assert tries == [0]
    assert [line["event"] for line in logged] == ["model not loaded", "router fell back"]
    assert all(line["again_s"] is None and line["detail"] for line in logged)


@pytest.mark.parametrize("error", [StageFailed("lost"), GpuRefused("busy"), Overloaded("busy")])
def test_a_first_that_breaks_is_answered_for_by_the_second_and_left_alone_for_a_while(error: CoatcheckError) -> None:
    both = Both()
    router = both.router()
    both.first.failure = error

    assert score(router) == 0.2
    both.first.failure = None
    both.now = 59
    assert score(router) == 0.2
    assert both.first.asked == 1
    both.now = 61
    assert score(router) == 0.1


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_scores_that_are_none_are_the_second_ones_to_give_and_the_next_texts_are_the_firsts_again(value: float) -> None:
    """A text that overflows is nobody else's trouble."""
    both = Both(first=Scoring(value))
    router = both.router()

    assert score(router) == 0.2
    both.first.score = 0.1
    assert score(router) == 0.1


def test_what_no_router_could_answer_is_not_asked_twice() -> None:
    both = Both()
    both.first.failure = StageUnavailable("The labels leave no room.")

    with pytest.raises(StageUnavailable, match="no room"):
        score(both.router())

    assert both.second.loads == 0


def test_where_neither_loads_the_stage_has_failed() -> None:
    with pytest.raises(StageFailed, match="second"):
        Both().router(_raising(RuntimeError("first")), _raising(StageUnavailable("The second does not load.")))


def test_where_neither_answers_the_stage_has_failed_and_says_so_each_time() -> None:
    both = Both()
    router = both.router()
    both.first.failure = both.second.failure = StageFailed("lost")

    for _ in range(2):
        with pytest.raises(StageFailed, match="lost"):
            score(router)
