"""Whatever becomes of a stage's model behind its worker: the text is kept with the reason, the answer comes in time.

And the service says that it is degraded, and lives on.
"""

from __future__ import annotations

import ctypes
import dataclasses
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import pytest_asyncio

from coatcheck.app.compose import Foundations
from coatcheck.app.models import open_models
from coatcheck.app.shortening import Shortening
from coatcheck.compaction.policy_document import shipped
from coatcheck.compaction.routing import route
from coatcheck.domain.budgets import Budget
from coatcheck.domain.ports import Compressor, EntailmentGate, Router, Summariser
from coatcheck.domain.routes import Decision, Entailment, Route, RouteScore
from coatcheck.models.stage_workers import CompressorWorker, EntailmentWorker, LazyModel, RouterWorker, SummariserWorker
from coatcheck.ops.progress import ProgressBoard, standard_stages
from tests import apps
from tests.compaction.making import OverlapGate, Replies, TableRouter, WordDropper, prose

LONG = f"{prose(30)} It is not loud there."
WINDOW = [{"role": "user", "content": "The port is 8443 and it stays."}, {"role": "assistant", "content": LONG}]
DEADLINE_S = 4
STAGES = ("router", "compressor", "entailment", "summariser")


class Troubled:
    """Every port at once, in some trouble."""

    revision = "troubled/1"

    def __init__(self, trouble: Callable[[], Any]) -> None:
        self._trouble = trouble

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> Any:
        return self._trouble()

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> Any:
        return self._trouble()

    def judge(self, pairs: Sequence[tuple[str, str]], budget: Budget) -> Any:
        return self._trouble()

    def summarise(self, texts: Sequence[str], max_chars: int, budget: Budget) -> Any:
        return self._trouble()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def _raises(error: BaseException) -> Callable[[], Any]:
    def trouble() -> Any:
        raise error

    return trouble


def _is_killed() -> Any:
    """The thread is ended from outside, as far as Python knows of it."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(SystemExit))
    for _ in range(1_000):
        time.sleep(0.001)


def _no_numbers() -> Any:
    nan = float("nan")
    return [dict.fromkeys(_labels(), nan)]


def _labels() -> Sequence[str]:
    return shipped().label_texts


NO_NUMBER: dict[str, Callable[[], Any]] = {
    "router": _no_numbers,
    "compressor": lambda: [float("nan")],
    "entailment": lambda: [Entailment(True, float("nan"))],
    "summariser": lambda: float("nan"),
}
OTHERS: dict[str, Callable[[], Any]] = {
    "router": lambda: [{"LABEL_0": 1.0}],
    "compressor": lambda: ["one", "answer", "too", "many"],
    "entailment": lambda: ["entailment"],
    "summariser": lambda: ["no", "text"],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Foundations]:
    async with apps.foundations(database_url, tmp_path_factory.mktemp("foundations")) as opened:
        yield opened


@asynccontextmanager
async def _serving(on: Foundations, stage: str, load: Callable[[], Any]) -> AsyncIterator[httpx.AsyncClient]:
    """An app whose stages are sound but one, each behind its worker."""
    board = ProgressBoard(standard_stages(60))
    sound: dict[str, Any] = {
        "router": TableRouter({"garden": RouteScore(Route.COMPRESS, 0.9, 0.8)}),
        "compressor": WordDropper(("slowly",)),
        "entailment": OverlapGate(),
        "summariser": Replies("The river follows the garden again. It is not loud there."),
    }

    def model(name: str) -> LazyModel[Any]:
        return LazyModel(f"{name}/1", load if name == stage else lambda: sound[name])

    def nobody(owner: object, seconds: float) -> None: ...

    router: LazyModel[Router] = model("router")
    compressor: LazyModel[Compressor] = model("compressor")
    entailment: LazyModel[EntailmentGate] = model("entailment")
    summariser: LazyModel[Summariser] = model("summariser")
    workers = (
        RouterWorker(router, board, nobody),
        CompressorWorker(compressor, board, nobody),
        EntailmentWorker(entailment, board, nobody),
        SummariserWorker(summariser, board, nobody),
    )
    fitted = dataclasses.replace(on, board=board, models=dataclasses.replace(on.models, shortening=Shortening(*workers)))
    try:
        async with apps.app_on(fitted, alone=True) as app, apps.client(app, await apps.new_tenant(app)) as http:
            yield http
    finally:
        for worker in workers:
            worker._worker.close(0.2)


async def _compacted(http: httpx.AsyncClient) -> tuple[dict[str, Any], list[dict[str, Any]], float]:
    started = time.monotonic()
    answer = await http.post(
        "/v1/compactions", json={"session": "s", "window": {"messages": WINDOW}}, headers={"Coatcheck-Deadline": str(DEADLINE_S)}
    )
    took_s = time.monotonic() - started
    assert answer.status_code == 201, answer.text
    entries = await http.get(f"/v1/manifests/{answer.json()['manifest_id']}/entries", params={"text": "true"})
    return answer.json(), entries.json()["entries"], took_s


async def test_with_sound_models_behind_their_workers_text_is_compressed_and_the_service_is_ready(on: Foundations) -> None:
    async with _serving(on, "", lambda: None) as http:
        answer, entries, _ = await _compacted(http)
        ready = (await http.get("/readyz?verbose")).json()

    assert [(e["route"], e["reason"]) for e in entries] == [("keep", "protected:address"), ("compress", "reduction:accepted")]
    assert answer["handoff"]["overview_source"] == "generated"
    assert (ready["status"], ready["failing"], ready["stuck"]) == ("ready", [], [])


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("trouble", ["missing", "raising", "nothing", "no number", "others", "killed", "memory", "hanging"])
async def test_the_text_is_kept_with_the_reason_in_time_and_the_service_is_degraded_and_lives(
    on: Foundations, stage: str, trouble: str, release: threading.Event
) -> None:
    does: dict[str, Callable[[], Any]] = {
        "raising": _raises(RuntimeError("broken")),
        "nothing": lambda: None,
        "no number": NO_NUMBER[stage],
        "others": OTHERS[stage],
        "killed": _is_killed,
        "memory": _raises(MemoryError()),
        "hanging": lambda: release.wait(60),
    }
    load = _raises(OSError("no such file")) if trouble == "missing" else lambda: Troubled(does[trouble])
    async with _serving(on, stage, load) as http:
        answer, entries, took_s = await _compacted(http)
        ready = await http.get("/readyz?verbose")
        alive = await http.get("/livez")
        release.set()
        again = await http.post("/v1/recall", json={"query": "which port", "session": "s"})

    reason = "late" if trouble == "hanging" else "failed"
    warnings = [warning["detail"] for warning in answer["warnings"] if warning["code"] == "stage-unavailable"]
    assert entries[1]["text"] == LONG
    if stage == "summariser":
        assert answer["handoff"]["overview_source"] == "excerpt"
    else:
        assert (entries[1]["route"], entries[1]["reason"]) == ("keep", f"{stage}:{reason}")
    assert [detail for detail in warnings if detail.startswith(f"{stage}: ")]
    assert took_s < DEADLINE_S
    assert (ready.status_code, ready.json()["status"], ready.json()["failing"]) == (200, "degraded", [stage])
    assert alive.status_code == 200
    assert again.status_code == 200


async def test_a_model_that_is_not_here_starts_degraded_and_says_where_to_look(database_url: str, tmp_path: Path) -> None:
    settings = apps.settings_for(database_url, tmp_path, router=str(tmp_path / "nowhere"))

    models = open_models(settings, ProgressBoard(standard_stages(60)))
    await models.close(10)

    decisions, warnings = route(["so nice"], models.shortening.router, shipped(), Budget.of(UUID(int=1), 60))
    assert decisions == [Decision(Route.KEEP, "router:unavailable")]
    assert [(w.code, w.detail) for w in warnings] == [("stage-unavailable", "router: model not installed; 1 segments kept")]
    assert models.shortening.summariser is None
    assert set(models.absent) == {"router"}
    assert "nowhere" in models.absent["router"] or "coatcheck[models]" in models.absent["router"]
