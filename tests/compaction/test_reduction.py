"""A proposal stands only when both gates pass it; otherwise the exact text does, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast
from uuid import UUID

import pytest

from coatcheck.compaction.policy_document import shipped
from coatcheck.compaction.reduction import Reduced, reduce
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import decode, sha256_of
from coatcheck.domain.errors import StageUnavailable
from coatcheck.domain.ports import Compressor, EntailmentGate
from coatcheck.domain.routes import Entailment, Route
from tests.compaction.making import Absent, OverlapGate, Replies, WordDropper

_TEXT = "The garden slowly becomes very quiet again."


def _one(text: str, compressor: Compressor | None, gate: EntailmentGate | None) -> Reduced:
    (reduced,), _ = reduce([text], compressor, gate, shipped(), Budget.of(UUID(int=1), 60))
    return reduced


def test_an_accepted_reduction_carries_its_hash_and_its_verdicts() -> None:
    reduced = _one(_TEXT, WordDropper(("slowly", "very")), OverlapGate())

    assert reduced.decision.route is Route.COMPRESS
    reduction = reduced.reduction
    assert reduction is not None
    assert decode(reduction.raw) == "The garden becomes quiet again."
    assert reduction.exact_sha256 == sha256_of(_TEXT)
    assert reduction.sha256 == sha256_of("The garden becomes quiet again.")
    assert reduction.reducer_revision == "word-dropper/1+overlap-gate/1"
    assert reduction.verdicts == {"facts": "kept", "entailment": "entailment", "margin": 0.9}


@pytest.mark.parametrize(
    ("proposal", "reason"),
    [
        ("", "reduction:empty"),
        ("  \n", "reduction:empty"),
        (_TEXT, "reduction:not-shorter"),
        (_TEXT + " And more.", "reduction:not-shorter"),
        ("The garden is loud.", "reduction:fact-added:word"),
        ("Garden becomes quiet.", "reduction:fact-added:name"),
        ("The quiet garden again.", "reduction:fact-moved:word"),
        ("garden \ud83d quiet", "reduction:no-text"),
    ],
)
def test_what_is_no_reduction_leaves_the_exact_text(proposal: str, reason: str) -> None:
    gate = OverlapGate()

    reduced = _one(_TEXT, Replies(proposal), gate)

    assert (reduced.decision.route, reduced.decision.reason, reduced.reduction) == (Route.KEEP, reason, None)
    assert gate.asked == 0


@pytest.mark.parametrize("margin", [0.05, float("nan"), float("inf"), None, "0.9"])
def test_the_label_alone_is_not_enough(margin: object) -> None:
    gate = OverlapGate(margin=cast(float, margin))

    assert _one(_TEXT, WordDropper(("slowly",)), gate).decision.reason == "reduction:unentailed"


@dataclass
class _Says:
    """Answers every pair with one verdict."""

    verdict: Entailment
    revision: str = "says/1"

    def judge(self, pairs: Sequence[tuple[str, str]], budget: Budget) -> list[Entailment]:
        return [self.verdict] * len(pairs)


def test_what_the_gate_says_of_the_other_direction_is_recorded_and_refuses_nothing() -> None:
    reduced = _one(_TEXT, WordDropper(("slowly",)), _Says(Entailment(True, 0.9, reverse=0.125)))

    assert reduced.reduction is not None
    assert reduced.reduction.verdicts == {"facts": "kept", "entailment": "entailment", "margin": 0.9, "reverse": 0.125}


def test_a_gate_that_cannot_judge_says_why_in_the_reason() -> None:
    reduced = _one(_TEXT, WordDropper(("slowly",)), _Says(Entailment(False, 0.0, reason="hypothesis-too-long")))

    assert (reduced.decision.route, reduced.decision.reason) == (Route.KEEP, "reduction:unentailed:hypothesis-too-long")


@pytest.mark.parametrize(
    ("compressor", "gate", "reason"),
    [
        (None, OverlapGate(), "compressor:unavailable"),
        (Absent(StageUnavailable("late")), OverlapGate(), "compressor:unavailable"),
        (Absent(IndexError("percentiles")), OverlapGate(), "compressor:failed"),
        (WordDropper(("slowly",)), None, "entailment:unavailable"),
        (WordDropper(("slowly",)), Absent(StageUnavailable("late")), "entailment:unavailable"),
        (WordDropper(("slowly",)), Absent(ValueError("x")), "entailment:failed"),
    ],
)
def test_without_a_stage_the_exact_text_stands_and_a_warning_counts(
    compressor: Compressor | None, gate: EntailmentGate | None, reason: str
) -> None:
    (reduced,), warnings = reduce([_TEXT], compressor, gate, shipped(), Budget.of(UUID(int=1), 60))

    assert (reduced.decision.route, reduced.decision.reason) == (Route.KEEP, reason)
    assert [warning.code for warning in warnings] == ["stage-unavailable"]
    assert "1 segments" in warnings[0].detail


class _Odd:
    """Models that answer in the right number and in the wrong kind."""

    revision = "odd/1"

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        return cast(list[str], [None] * len(texts))

    def judge(self, pairs: Sequence[tuple[str, str]], budget: Budget) -> list[Entailment]:
        return cast(list[Entailment], ["entailment"] * len(pairs))


def test_an_answer_of_another_kind_leaves_the_exact_text() -> None:
    assert _one(_TEXT, _Odd(), OverlapGate()).decision.reason == "reduction:no-text"
    assert _one(_TEXT, WordDropper(("slowly",)), _Odd()).decision.reason == "reduction:unentailed"


def test_when_the_time_is_over_the_exact_text_stands() -> None:
    clock = iter((0.0, 0.0, 11.0))
    budget = Budget(UUID(int=1), 10.0, lambda: next(clock, 11.0))
    gate = OverlapGate()

    (reduced,), warnings = reduce([_TEXT], WordDropper(("slowly",)), gate, shipped(), budget)

    assert (reduced.decision.reason, gate.asked) == ("entailment:late", 0)
    assert [w.detail for w in warnings] == ["entailment: no time was left; 1 segments kept exact only"]


def test_what_there_was_time_for_is_reduced_and_the_rest_stands_exact() -> None:
    clock = _Clock()
    budget = Budget(UUID(int=1), 10.0, lambda: clock.time_s)
    texts = [f"The garden is slowly becoming quiet, so {name} says it. " * 130 for name in ("Alice", "Bob", "Carol", "Dave")]

    results, warnings = reduce(texts, _Slow(("slowly",), clock), OverlapGate(), shipped(), budget)

    assert [result.decision.reason for result in results] == ["reduction:accepted"] * 2 + ["compressor:late"] * 2
    assert [w.detail for w in warnings] == ["compressor: the answer came too late; 2 segments kept exact only"]


@dataclass
class _Clock:
    time_s: float = 0.0


class _Slow(WordDropper):
    """Takes four seconds of the clock for each call."""

    def __init__(self, words: tuple[str, ...], clock: _Clock) -> None:
        super().__init__(words)
        self._clock = clock

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        self._clock.time_s += 4.0
        return super().compress(texts, rate, budget)


def test_each_text_has_its_own_verdict() -> None:
    texts = [_TEXT, "slowly", "It is slowly not so."]

    results, _ = reduce(texts, WordDropper(("slowly", "not")), OverlapGate(), shipped(), Budget.of(UUID(int=1), 60))

    assert [result.decision.reason for result in results] == [
        "reduction:accepted",
        "reduction:empty",
        "reduction:fact-missing:negation",
    ]
