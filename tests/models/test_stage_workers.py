"""The stages' workers: what a model is asked, on whose account, when it is loaded, and what of its answers leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import GpuRefused, GpuUnfit, GpuUnsupported, RefusedToStart, StageFailed, StageUnavailable, StageUnfit
from coatcheck.domain.routes import Entailment
from coatcheck.models.lazily import Lazily
from coatcheck.models.stage_workers import CompressorWorker, EntailmentWorker, LazyModel, RouterWorker, SummariserWorker
from coatcheck.ops.meter import Meter
from coatcheck.ops.progress import ProgressBoard, standard_stages

OWNER = UUID(int=1)


class Recorder:
    """Every port at once: it answers, and remembers what it was asked."""

    revision = "recorder/1"

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        self.asked.append((list(texts), tuple(labels), budget.owner))
        return [dict.fromkeys(labels, len(text) / 10_000) for text in texts]

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        self.asked.append((list(texts), rate, budget.owner))
        return [text[: int(len(text) * rate)] for text in texts]

    def judge(self, pairs: Sequence[tuple[str, str]], budget: Budget) -> list[Entailment]:
        self.asked.append((list(pairs), budget.owner))
        return [Entailment(premise == hypothesis, 0.5) for premise, hypothesis in pairs]

    def summarise(self, texts: Sequence[str], max_chars: int, budget: Budget) -> str:
        self.asked.append((list(texts), max_chars, budget.owner))
        return " ".join(texts)[:max_chars]


def _soon() -> Budget:
    return Budget.of(OWNER, 20)


def _board() -> ProgressBoard:
    return ProgressBoard(standard_stages(60))


def _lazy(recorder: Any, loads: list[int] | None = None) -> LazyModel[Any]:
    def load() -> Any:
        if loads is not None:
            loads.append(1)
        return recorder

    return LazyModel("recorder/1", load)


async def test_each_stage_answers_in_order_for_the_budgets_owner_and_is_charged_to_it() -> None:
    recorder, meter, board = Recorder(), Meter(), _board()
    router = RouterWorker(_lazy(recorder), board, meter.add)
    compressor = CompressorWorker(_lazy(recorder), board, meter.add)
    gate = EntailmentWorker(_lazy(recorder), board, meter.add)
    summariser = SummariserWorker(_lazy(recorder), board, meter.add)

    assert router.route(["a", "bbb"], ["x"], _soon()) == [{"x": 0.0001}, {"x": 0.0003}]
    assert compressor.compress(["aaaa", "bb"], 0.5, _soon()) == ["aa", "b"]
    assert gate.judge([("a", "a"), ("a", "b")], _soon()) == [Entailment(True, 0.5), Entailment(False, 0.5)]
    assert summariser.summarise(["one", "two"], 5, _soon()) == "one t"
    for worker in (router, compressor, gate, summariser):
        await worker.close()

    assert {asked[-1] for asked in recorder.asked} == {OWNER}
    assert meter.take(OWNER) > 0


async def test_long_texts_are_few_to_a_batch() -> None:
    recorder = Recorder()
    router = RouterWorker(_lazy(recorder), _board(), _nobody)

    router.route(["x" * 3_800] * 9 + ["y"] * 9, ["label"], _soon())
    await router.close()

    assert [sum(map(len, texts)) <= 16_000 for texts, _, _ in recorder.asked] == [True] * len(recorder.asked)
    assert [len(texts) for texts, _, _ in recorder.asked] == [4, 4, 8, 2]


async def test_a_model_is_loaded_once_when_it_is_first_asked_or_warmed() -> None:
    loads: list[int] = []
    router = RouterWorker(_lazy(Recorder(), loads), _board(), _nobody)
    assert (router.revision, loads) == ("recorder/1", [])

    await router.warm()
    router.route(["a"], ["x"], _soon())
    await router.close()

    assert loads == [1]


async def test_warming_a_model_that_does_not_load_raises_nothing_and_is_seen() -> None:
    board = _board()

    def load() -> Any:
        raise OSError("gone")

    router = RouterWorker(LazyModel("gone/1", load), board, _nobody)
    await router.warm()
    await router.close()

    assert board.failing() == ("router",)


def test_a_model_that_does_not_load_is_tried_again_after_a_while_and_not_before() -> None:
    now, tries = [0.0], [0]

    def load() -> str:
        tries[0] += 1
        if tries[0] < 3:
            raise OSError("not yet")
        return "model"

    lazily = Lazily("router", load, retry_s=60, monotonic=lambda: now[0])
    for at, expected in ((0, 1), (59, 1), (61, 2), (100, 2)):
        now[0] = at
        with pytest.raises(StageFailed, match="does not load"):
            lazily()
        assert tries == [expected]
    now[0] = 130

    assert (lazily(), lazily(), tries) == ("model", "model", [3])


def _refused(error: Exception, cause: Exception | None = None) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (StageUnfit("another kind"), 1),
        (GpuUnfit("another kind"), 1),
        (RefusedToStart("another kind"), 1),
        (_refused(GpuUnfit("another kind"), ValueError("no JSON")), 1),
        (_refused(GpuUnfit("another kind"), OSError("the share is away")), 2),
        (GpuRefused("another kind"), 2),
        (GpuUnsupported("another kind"), 2),
    ],
)
def test_a_model_that_no_try_can_make_fit_is_loaded_once_and_says_why_each_time(error: Exception, tries: int) -> None:
    now, made = [0.0], [0]

    def load() -> str:
        made[0] += 1
        raise error

    lazily = Lazily("router", load, retry_s=60, monotonic=lambda: now[0])
    for at in (0, 1, 61):
        now[0] = at
        with pytest.raises(StageFailed, match="another kind"):
            lazily()

    assert made == [tries]


def _nobody(owner: UUID, seconds: float) -> None: ...


Asks = Callable[[Any], object]
STAGES: Mapping[str, tuple[type[Any], str, Asks]] = {
    "router": (RouterWorker, "route", lambda worker: worker.route(["a"], ["x"], _soon())),
    "compressor": (CompressorWorker, "compress", lambda worker: worker.compress(["a"], 0.5, _soon())),
    "entailment": (EntailmentWorker, "judge", lambda worker: worker.judge([("a", "b")], _soon())),
    "summariser": (SummariserWorker, "summarise", lambda worker: worker.summarise(["a"], 9, _soon())),
}
NO_ANSWERS: Mapping[str, Sequence[Any]] = {
    "router": [
        [{"x": 1.5}], [{"x": -0.1}], [{"x": float("nan")}], [{"x": "high"}], [{"y": 0.5}], [{}], [], [{"x": 0.5}] * 2, None, [None]
    ],
    "compressor": [[1], [None], [], None, ["a", "b"], [float("nan")]],
    "entailment": [[True], [Entailment(True, float("inf"))], [Entailment(True, cast(float, "wide"))], [], None],
    "summariser": [None, ["text"], 5],
}  # fmt: skip


@pytest.mark.parametrize(("stage", "answer"), [(stage, answer) for stage, answers in NO_ANSWERS.items() for answer in answers])
async def test_an_answer_that_is_none_does_not_leave_its_stage(stage: str, answer: Any) -> None:
    worker_of, method, ask = STAGES[stage]
    model = type("Model", (), {method: lambda self, *given: answer})
    worker = worker_of(LazyModel("model/1", model), _board(), _nobody)

    with pytest.raises(StageFailed):
        await asyncio.to_thread(ask, worker)
    await worker.close()


async def test_no_time_left_is_said_before_the_model_is_asked() -> None:
    recorder = Recorder()
    router = RouterWorker(_lazy(recorder), _board(), _nobody)

    with pytest.raises(StageUnavailable, match="time"):
        router.route(["a"], ["x"], Budget.of(OWNER, -1))
    await router.close()

    assert recorder.asked == []
