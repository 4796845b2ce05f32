"""Reranked recall over the routes: the order, and what an ailing reranker does to it (nothing but a warning)."""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio

from coatcheck.app.storage import OpenedIndex
from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.passages import IndexHit, RecallFilter, SparseVector
from coatcheck.domain.ports import Reranker, VectorIndex
from coatcheck.domain.scopes import Scope
from coatcheck.models import build_reranker
from coatcheck.models.reranking import RerankWorker
from tests import apps
from tests.contract.kept import hand_in
from tests.contract.recalling import DAY, recall, said
from tests.faults.troubled_index import TroubledIndex

QUERY = "What is the speed of light?"
ANSWER = "Light travels at 299,792 kilometres per second in a vacuum."
TURNS = [
    "The speed of the deployment is what we have to talk about; light work, speed counts.",
    "The light in the office: its speed of dimming is too low.",
    ANSWER,
    "Lunch was good, thanks.",
    "What is the speed limit? Traffic light problems again.",
    *(f"Turn {n}: the kitchen, the garden and the cellar." for n in range(40)),
]


class Ailing:
    """A reranker whose answer the test chooses."""

    revision = "ailing-1"
    weights: Path | None = None
    english_only = False

    def __init__(self) -> None:
        self.answer: Callable[[Sequence[str]], Any] = lambda passages: [0.0] * len(passages)

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        return cast("list[float]", self.answer(passages))


@asynccontextmanager
async def asked_with(
    database_url: str,
    folder: Path,
    reranker: Reranker | None,
    index: Callable[[VectorIndex], VectorIndex] = lambda opened: opened,
    **settings: object,
) -> AsyncIterator[httpx.AsyncClient]:
    """An app with this reranker, and one session in it."""
    async with apps.foundations(database_url, folder, **settings) as on:
        worker = RerankWorker(reranker, on.board) if reranker is not None else None
        models = dataclasses.replace(on.models, reranker=worker)
        async with (
            apps.app_on(dataclasses.replace(on, models=models, index=OpenedIndex(index(on.index.index))), alone=True) as one,
            apps.client(one, await apps.new_tenant(one)) as http,
        ):
            await hand_in(http, "s", {"messages": [said(text) for text in TURNS]})
            yield http
        if worker is not None:
            await worker.close()


@pytest.fixture
def ailing() -> Ailing:
    return Ailing()


@pytest_asyncio.fixture(loop_scope="module")
async def http(database_url: str, tmp_path: Path, ailing: Ailing) -> AsyncIterator[httpx.AsyncClient]:
    settings: dict[str, Any] = {"rerank_limit_s": 0.4, "stage_limit_s": 1.5, "fusion_dense_weight": 0}
    async with asked_with(database_url, tmp_path, ailing, **settings) as client:
        yield client


async def readiness(http: httpx.AsyncClient) -> dict[str, Any]:
    """Once the last report has aged: it is made at most once a second."""
    body: dict[str, Any] = (await http.get("/readyz?verbose")).json()
    return body


async def test_the_packaged_reranker_puts_the_answer_first(database_url: str, tmp_path: Path) -> None:
    reranker = build_reranker("auto").model
    assert reranker is not None
    async with asked_with(database_url, tmp_path, reranker, rerank_limit_s=60, fusion_dense_weight=0) as http:
        fused = await recall(http, QUERY, session="s", rerank="off")
        reranked = await recall(http, QUERY, session="s")
        russian = await recall(http, "какова скорость света speed", session="s")

    assert fused["hits"][0]["text"] != ANSWER
    assert fused["legs"]["rerank"] == "off"
    assert reranked["legs"]["rerank"] == "used"
    assert reranked["warnings"] == []
    assert (reranked["hits"][0]["text"], reranked["hits"][0]["ranks"]["rerank"]) == (ANSWER, 1)
    assert russian["legs"]["rerank"] == "off"  # a model of English


def raising(error: BaseException) -> Callable[[Sequence[str]], Any]:
    def answer(passages: Sequence[str]) -> Any:
        raise error

    return answer


def killed(passages: Sequence[str]) -> Any:
    """What ends a thread from outside arrives while the model works."""
    me = ctypes.c_ulong(threading.get_ident())
    ctypes.pythonapi.PyThreadState_SetAsyncExc(me, ctypes.py_object(SystemExit))
    time.sleep(0.01)
    return [0.0] * len(passages)


@pytest.mark.parametrize(
    "answer",
    [
        raising(RuntimeError("broken")),
        raising(MemoryError()),
        killed,
        lambda passages: None,
        lambda passages: [],
        lambda passages: [float("nan")] * len(passages),
        lambda passages: [1.0] * (len(passages) + 1),
        lambda passages: [[1.0, 2.0]] * len(passages),
    ],
    ids=["raising", "out of memory", "killed thread", "nothing", "no scores", "NaN", "too many", "another shape"],
)
async def test_an_ailing_reranker_costs_the_order_and_says_so(
    http: httpx.AsyncClient, ailing: Ailing, answer: Callable[[Sequence[str]], Any]
) -> None:
    fused = await recall(http, QUERY, session="s", rerank="off")
    ailing.answer = answer

    found = await recall(http, QUERY, session="s")
    ready = await readiness(http)

    assert [hit["sha256"] for hit in found["hits"]] == [hit["sha256"] for hit in fused["hits"]]
    assert all(hit["ranks"]["rerank"] is None for hit in found["hits"])
    assert found["legs"]["rerank"] == "unavailable: stage-unavailable"
    assert [warning["code"] for warning in found["warnings"]] == ["stage-unavailable"]
    assert (ready["status"], ready["failing"]) == ("degraded", ["rerank"])

    ailing.answer = lambda passages: [float(len(passages) - n) for n in range(len(passages))]
    assert (await recall(http, QUERY, session="s"))["legs"]["rerank"] == "used"
    assert (await readiness(http))["status"] == "ready"


async def test_a_reranker_that_hangs_is_left_at_the_limit_and_reported_and_used_again_after(
    http: httpx.AsyncClient, ailing: Ailing
) -> None:
    release = threading.Event()

    def hang(passages: Sequence[str]) -> list[float]:
        release.wait(30)
        return [0.0] * len(passages)

    ailing.answer = hang
    started = time.monotonic()
    late = await recall(http, QUERY, session="s")
    took_s = time.monotonic() - started
    try:
        await asyncio.sleep(1.6)
        refused_after_s = []
        for _ in range(5):  # whatever else this machine is doing meanwhile
            asked_again = time.monotonic()
            refused = await recall(http, QUERY, session="s")
            refused_after_s.append(time.monotonic() - asked_again)
        ready, live = await readiness(http), await http.get("/livez")
    finally:
        release.set()

    assert late["legs"]["rerank"] == refused["legs"]["rerank"] == "unavailable: stage-unavailable"
    assert 0.4 <= took_s < 5
    assert min(refused_after_s) < 0.4
    assert (ready["status"], ready["stuck"], live.status_code) == ("degraded", ["rerank"], 200)
    async with asyncio.timeout(10):
        while (await http.get("/progressz")).json()["stages"]["rerank"]["in_flight"]:  # noqa: ASYNC110 - another thread ends it
            await asyncio.sleep(0.02)
    assert (await recall(http, QUERY, session="s"))["legs"]["rerank"] == "used"


async def test_a_short_deadline_is_kept(http: httpx.AsyncClient, ailing: Ailing) -> None:
    release = threading.Event()
    ailing.answer = lambda passages: [0.0] * len(passages) if release.wait(30) else []

    answer = await http.post("/v1/recall", json={"query": QUERY, "session": "s"}, headers={"Coatcheck-Deadline": "0.5"})
    release.set()

    assert answer.status_code == 200
    assert answer.json()["legs"]["rerank"] == "unavailable: stage-unavailable"


async def test_without_a_reranker_only_who_insists_is_told(database_url: str, tmp_path: Path) -> None:
    async with asked_with(database_url, tmp_path, None) as http:
        auto, insisted = await recall(http, QUERY), await recall(http, QUERY, rerank="on")

    assert (auto["legs"]["rerank"], auto["warnings"]) == ("off", [])
    assert insisted["legs"]["rerank"] == "unavailable: stage-unavailable"
    assert [warning["code"] for warning in insisted["warnings"]] == ["stage-unavailable"]


async def test_a_reranker_that_is_asked_for_and_missing_degrades_readiness(database_url: str, tmp_path: Path) -> None:
    async with apps.foundations(database_url, tmp_path) as on:
        models = dataclasses.replace(on.models, absent={"reranker": "neither packaged weights nor a hub that answers"})
        async with apps.app_on(dataclasses.replace(on, models=models)) as one, apps.client(one) as http:
            ready = await readiness(http)

    assert ready["status"] == "degraded"
    assert ready["checks"]["reranker"].startswith("absent: ")


async def test_a_correction_that_the_query_does_not_find_is_named_where_hits_are_reranked(http: httpx.AsyncClient) -> None:
    earlier = "The recommended connection limit is pool_size = 20 in settings.toml."
    later = "After the load test pool_size in settings.toml was changed from 20 to 40."
    others = [f"The recommended connection limit of tool {number} is not known, ask {number}." for number in range(40)]
    texts = [earlier, *others, later]
    times = [(DAY + timedelta(days=n)).isoformat() for n in range(len(texts))]
    await hand_in(http, "limits", {"messages": [said(text) for text in texts], "times": times})

    found, quick = [
        {
            hit["text"]: hit
            for hit in (await recall(http, "recommended connection limit", session="limits", top_k=20, **asked))["hits"]
        }
        for asked in ({"rerank": "on"}, {"rerank": "off"})
    ]

    assert later not in found
    assert found[earlier]["superseded_by"]["sha256"] == sha256_of(later)
    assert {text for text, hit in found.items() if hit["superseded_by"]} == {earlier}
    assert quick[earlier]["superseded_by"] is None  # of what was found alone


class HaltsAtTheSecond(TroubledIndex):
    """Of a recall's look-ups in the lexical leg only the first is answered."""

    asked = 0

    async def search_lexical(
        self, scope: Scope, generation: int, vector: SparseVector, narrow: RecallFilter, limit: int
    ) -> list[IndexHit]:
        self.asked += 1
        if self.asked % 2 == 0:
            await asyncio.sleep(3_600)
        return await super().search_lexical(scope, generation, vector, narrow, limit)


async def test_hits_do_not_wait_for_an_index_that_halts_at_the_look_up_of_corrections(
    database_url: str, tmp_path: Path, ailing: Ailing
) -> None:
    settings: dict[str, Any] = {"rerank_limit_s": 5, "fusion_dense_weight": 0}
    async with asked_with(database_url, tmp_path, ailing, HaltsAtTheSecond, **settings) as http:
        await hand_in(http, "limits", {"messages": [said("The limit is pool_size = 20 in settings.toml." + "." * 900)]})
        started = time.monotonic()

        found = await recall(http, "limit", session="limits", rerank="on")

        assert found["legs"] == {"lexical": "used", "dense": "off", "rerank": "used"}
        assert len(found["hits"]) == 1
        assert time.monotonic() - started < 10
