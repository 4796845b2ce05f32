"""Asking a model stage: an absent, failing or late model is an answer too, and never an error of the compaction."""

from __future__ import annotations

from collections.abc import Callable, Sized
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import Overloaded, StageFailed, StageUnavailable
from coatcheck.domain.plans import PlanWarning

Answer = TypeVar("Answer", bound=Sized)

NOT_INSTALLED = "model not installed"


@dataclass(frozen=True, slots=True)
class Asked(Generic[Answer]):
    """The answer, or why there is none: ``unavailable`` (no model, overloaded), ``late`` or ``failed`` (it broke)."""

    answer: Answer | None
    trouble: str = ""
    detail: str = ""


def ask(call: Callable[[], Answer] | None, budget: Budget | None = None, expected: int | None = None) -> Asked[Answer]:
    """Calls a stage, within the budget of models where it is one. ``expected`` is the length that its answer must have."""
    if call is None:
        return Asked(None, "unavailable", NOT_INSTALLED)
    if budget is not None and budget.left_s() <= 0:
        return Asked(None, "late", "no time was left")
    try:
        with budget.aside() if budget is not None else nullcontext():
            answer = call()
    except (StageUnavailable, Overloaded) as error:
        if budget is not None and budget.left_s() <= 0:
            return Asked(None, "late", "no answer in time")
        return Asked(None, "failed" if isinstance(error, StageFailed) else "unavailable", error.detail)
    except Exception as error:  # A model may break in any way its libraries know; what it did is recorded, the text is kept.
        return Asked(None, "failed", type(error).__name__)
    if budget is not None and budget.left_s() <= 0:
        return Asked(None, "late", "the answer came too late")
    try:
        count = len(answer)
    except TypeError:
        return Asked(None, "failed", "no answer")
    if expected is not None and count != expected:
        return Asked(None, "failed", f"{count} answers to {expected} questions")
    return Asked(answer)


def unavailable(stage: str, asked: Asked[Answer], consequence: str) -> PlanWarning:
    """The warning about a stage that gave no answer."""
    return PlanWarning("stage-unavailable", f"{stage}: {asked.detail}; {consequence}")
