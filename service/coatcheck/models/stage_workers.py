"""The four stages that shorten text, each behind a worker of its own: the ports that the planner asks.

A job carries its tenant and its deadline; a batch holds inputs of one job. What a model answers is looked at before it leaves: an
answer that is none (no number, other labels, no text) is the stage's failure, of which ``/readyz`` tells, and costs no text.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import Overloaded, StageFailed, StageUnavailable
from coatcheck.domain.ports import Compressor, EntailmentGate, Router, Summariser
from coatcheck.domain.routes import Entailment
from coatcheck.models.lazily import Lazily
from coatcheck.models.worker import CLOSE_LIMIT_S, BatchLimits, ModelWorker
from coatcheck.ops.progress import ProgressBoard

CAPACITY = 16
"""Compactions that wait for one model; by far more than plan at the same time."""
LIMITS = BatchLimits(inputs=8, size=16_000)
"""Four segments of the greatest length, or eight of usual ones: a second or two on two cores, after which another tenant's turn
comes, and a bound of what one batch takes of memory."""
ONE = BatchLimits(inputs=1, size=1)
WARM_LIMIT_S = 120.0
NOBODY = UUID(int=0)
"""Whose turn the warming is."""

M = TypeVar("M")
I = TypeVar("I")  # noqa: E741 - what goes in, and what comes out
O = TypeVar("O")  # noqa: E741

Worked = Callable[[UUID, float], None]


@dataclass(frozen=True, slots=True)
class LazyModel(Generic[M]):
    """A model by its revision, which is known before it is loaded."""

    revision: str
    load: Callable[[], M]
    is_remote: bool = False
    """Whether it runs elsewhere: then there is nothing to load, and a word to it may cost money."""


class StageWorker(Generic[M, I, O]):
    """A lazy model behind its worker."""

    def __init__(
        self,
        stage: str,
        model: LazyModel[M],
        work: Callable[[M, Sequence[I]], Sequence[O]],
        progress: ProgressBoard,
        *,
        size_of: Callable[[I], int],
        warm_with: Callable[[Budget], I],
        limits: BatchLimits = LIMITS,
        worked: Worked,
    ) -> None:
        self.revision = model.revision
        lazily = Lazily(stage, model.load)
        self._warm_with = None if model.is_remote else warm_with
        self._worker: ModelWorker[I, O] = ModelWorker(
            stage,
            lambda batch: work(lazily(), batch),
            progress,
            capacity=CAPACITY,
            limits=limits,
            size_of=size_of,
            worked=worked,
        )

    def ask(self, inputs: Sequence[I], budget: Budget) -> list[O]:
        return self._worker.run_blocking(budget.owner, inputs, budget.left_s())

    async def warm(self) -> None:
        """Loads the model before a compaction waits for it. Raises nothing: one that cannot be loaded is seen on the board."""
        if self._warm_with is None:
            return
        with suppress(StageUnavailable, Overloaded):
            await self._worker.run(NOBODY, [self._warm_with(Budget.of(NOBODY, WARM_LIMIT_S))], WARM_LIMIT_S)

    async def close(self, limit_s: float = CLOSE_LIMIT_S) -> None:
        await asyncio.to_thread(self._worker.close, limit_s)


@dataclass(frozen=True, slots=True)
class _ToRoute:
    text: str
    labels: tuple[str, ...]
    budget: Budget


class RouterWorker(StageWorker[Router, _ToRoute, Mapping[str, float]]):
    """Router port."""

    def __init__(self, model: LazyModel[Router], progress: ProgressBoard, worked: Worked) -> None:
        super().__init__(
            "router",
            model,
            _scores,
            progress,
            size_of=lambda one: len(one.text),
            warm_with=lambda budget: _ToRoute("warm", ("warm",), budget),
            worked=worked,
        )

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        asked = tuple(labels)
        return self.ask([_ToRoute(text, asked, budget) for text in texts], budget)


def _scores(router: Router, batch: Sequence[_ToRoute]) -> Sequence[Mapping[str, float]]:
    labels = batch[0].labels
    found = router.route([one.text for one in batch], labels, batch[0].budget)
    for scores in found:
        if not isinstance(scores, Mapping) or set(scores) != set(labels):
            raise StageFailed("The model of the stage router answered for other labels.")
        if not all(_is_number(score) and 0 <= score <= 1 for score in scores.values()):
            raise StageFailed("The model of the stage router gave scores that are none.")
    return found


@dataclass(frozen=True, slots=True)
class _ToCompress:
    text: str
    rate: float
    budget: Budget


class CompressorWorker(StageWorker[Compressor, _ToCompress, str]):
    """Compressor port."""

    def __init__(self, model: LazyModel[Compressor], progress: ProgressBoard, worked: Worked) -> None:
        super().__init__(
            "compressor",
            model,
            _shorter,
            progress,
            size_of=lambda one: len(one.text),
            warm_with=lambda budget: _ToCompress("Here the model is made warm.", 0.5, budget),
            limits=ONE,  # read one by one in any case: a batch would only make other tenants wait
            worked=worked,
        )

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        return self.ask([_ToCompress(text, rate, budget) for text in texts], budget)


def _shorter(compressor: Compressor, batch: Sequence[_ToCompress]) -> Sequence[str]:
    found = compressor.compress([one.text for one in batch], batch[0].rate, batch[0].budget)
    if not all(isinstance(text, str) for text in found):
        raise StageFailed("The model of the stage compressor gave what is no text.")
    return found


@dataclass(frozen=True, slots=True)
class _ToJudge:
    pair: tuple[str, str]
    budget: Budget


class EntailmentWorker(StageWorker[EntailmentGate, _ToJudge, Entailment]):
    """EntailmentGate port."""

    def __init__(self, model: LazyModel[EntailmentGate], progress: ProgressBoard, worked: Worked) -> None:
        super().__init__(
            "entailment",
            model,
            _verdicts,
            progress,
            size_of=lambda one: sum(map(len, one.pair)),
            warm_with=lambda budget: _ToJudge(("The model is warm.", "It is warm."), budget),
            worked=worked,
        )

    def judge(self, pairs: Sequence[tuple[str, str]], budget: Budget) -> list[Entailment]:
        return self.ask([_ToJudge(pair, budget) for pair in pairs], budget)


def _verdicts(gate: EntailmentGate, batch: Sequence[_ToJudge]) -> Sequence[Entailment]:
    found = gate.judge([one.pair for one in batch], batch[0].budget)
    if not all(isinstance(verdict, Entailment) and _is_number(verdict.margin) for verdict in found):
        raise StageFailed("The model of the stage entailment gave verdicts that are none.")
    return found


@dataclass(frozen=True, slots=True)
class _ToSummarise:
    texts: tuple[str, ...]
    max_chars: int
    budget: Budget


class SummariserWorker(StageWorker[Summariser, _ToSummarise, str]):
    """Summariser port. A job is one window."""

    def __init__(self, model: LazyModel[Summariser], progress: ProgressBoard, worked: Worked) -> None:
        super().__init__(
            "summariser",
            model,
            _overviews,
            progress,
            size_of=lambda one: 1,
            warm_with=lambda budget: _ToSummarise(("Here the model is made warm.",), 200, budget),
            limits=ONE,
            worked=worked,
        )

    def summarise(self, texts: Sequence[str], max_chars: int, budget: Budget) -> str:
        return self.ask([_ToSummarise(tuple(texts), max_chars, budget)], budget)[0]


def _overviews(summariser: Summariser, batch: Sequence[_ToSummarise]) -> Sequence[str]:
    found = [summariser.summarise(one.texts, one.max_chars, one.budget) for one in batch]
    if not all(isinstance(text, str) for text in found):
        raise StageFailed("The model of the stage summariser gave what is no text.")
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and math.isfinite(value)
