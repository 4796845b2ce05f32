"""The FP8 router on real quantised checkpoints: with graphs and without, broken and whole, and through the HTTP door."""

from __future__ import annotations

import math
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import pytest_asyncio
import torch

from coatcheck.app.compose import App
from coatcheck.compaction.policy_document import shipped
from coatcheck.domain.budgets import Budget
from coatcheck.domain.errors import GpuRefused, GpuUnfit, StageUnfit
from coatcheck.domain.ports import Router
from coatcheck.gpu.fp8.layout import WEIGHTS_FILE
from coatcheck.gpu.fp8.quantise import quantise
from coatcheck.gpu.graphs import Buckets, Shape
from coatcheck.gpu.graphs.backend import Captured
from coatcheck.gpu.graphs.recording import RecordingGraphs
from coatcheck.gpu.router import REFERENCE, Placement, gpu
from coatcheck.models import fp8_router as fp8_router_module
from coatcheck.models import stage_models
from coatcheck.models.fallback import FallbackRouter
from coatcheck.models.fp8_router import fp8_router, on
from coatcheck.models.gliclass import GliclassRouter
from tests import apps
from tests.torch import tiny
from tests.torch.gpu import encoders
from tests.torch.gpu.conftest import NO_GPU
from tests.torch.gpu.fp8 import checkpoints

LABELS = shipped().label_texts
FACT = "this belongs to the painter now"
CHATTER = "how nice that is, well done"
LONG = " ".join(
    f"Well, the {who} actually just walked along the quiet {where} and he simply remembered the old story of it. Of course "
    f"the teacher was really there as well, and she just smiled at the {where}."
    for who, where in (("gardener", "river"), ("painter", "harbour"), ("neighbour", "market"), ("brother", "garden"))
)
TAUGHT = {LONG: LABELS[2], CHATTER: LABELS[3], FACT: LABELS[0]}
WINDOW = [
    {"role": "user", "content": "The port is 8443 and it stays."},
    {"role": "assistant", "content": CHATTER},
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": FACT},
]
ON_GRAPHS = Placement("cpu", "torch", RecordingGraphs)
"""As on a GPU, with what can be had of one here."""


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small mT5 GLiClass that was taught three texts, rounded to BF16, and quantised."""
    folder = tmp_path_factory.mktemp("checkpoint")
    tokenizer = tiny.bert_tokenizer([*TAUGHT, *LABELS], tiny.GLICLASS)
    model, _ = tiny.gliclass(folder / "bf16", [], [], encoder=encoders.mt5(tokenizer), tokenizer=tokenizer)
    tiny.train_gliclass(model, tokenizer, TAUGHT, LABELS, steps=30)
    tiny.save(model.bfloat16(), tokenizer, folder / "bf16")
    quantise(folder / "bf16", folder / "fp8")
    return folder / "fp8"


def _scores(router: Router, texts: Sequence[str] = tuple(TAUGHT)) -> list[Mapping[str, float]]:
    return router.route(texts, LABELS, Budget.of(UUID(int=1), 60))


def _best(scores: Mapping[str, float]) -> str:
    return max(scores, key=lambda label: scores[label])


@pytest.fixture(params=["graphs", pytest.param("cuda", marks=pytest.mark.gpu)])
def place(request: pytest.FixtureRequest, quantised: Path) -> Placement:
    """A GPU, or what stands in its place here."""
    if request.param == "graphs":
        return ON_GRAPHS
    if not torch.cuda.is_available():
        pytest.skip(NO_GPU)
    return gpu(quantised)


def test_every_label_has_its_score_and_the_one_it_was_taught_is_the_best(quantised: Path, place: Placement) -> None:
    for router in (on(REFERENCE, quantised, "r"), on(place, quantised, "r")):
        found = _scores(router)

        assert [set(scores) for scores in found] == [set(LABELS)] * len(TAUGHT)
        assert [_best(scores) for scores in found] == list(TAUGHT.values())
        assert all(0 <= score <= 1 for scores in found for score in scores.values())


def test_graphs_change_no_score_by_more_than_padding_does(quantised: Path, place: Placement) -> None:
    """A length for each bucket, one beyond them, and one beyond what the model reads, which is read in parts."""
    texts = [*(f"{CHATTER}, {FACT}. " * count for count in (0, 1, 6, 10)), f"{LONG} " * 2, f"{LONG} " * 5]
    plain, graphs = on(REFERENCE, quantised, "r"), on(place, quantised, "r")
    lengths = [graphs._length(text, LABELS) for text in texts]
    assert [Buckets.of(most_tokens=512).fitting(Shape(length)) for length in lengths] == [
        Shape(64), Shape(128), Shape(192), Shape(256), None, None,
    ]  # fmt: skip
    assert len(graphs._parts(texts[-1], LABELS)) > 1

    for scores, expected in zip(_scores(graphs, texts), _scores(plain, texts), strict=True):
        assert scores == pytest.approx(expected, abs=0.03)


def test_a_text_has_the_same_scores_whatever_is_read_before_it(quantised: Path) -> None:
    router = on(ON_GRAPHS, quantised, "r")
    alone = _scores(router, [CHATTER])[0]

    assert _scores(router, [LONG, FACT, CHATTER])[2] == alone


def test_a_long_text_counts_by_its_greatest_part_and_no_label_is_cut_off(quantised: Path) -> None:
    router = on(ON_GRAPHS, quantised, "r")
    text = f"{LONG} " * 5 + FACT

    parts = router._parts(text, LABELS)
    each = _scores(router, parts)

    assert "".join(parts) == text
    assert len(parts) > 1
    assert _scores(router, [text])[0] == {label: max(scores[label] for scores in each) for label in LABELS}


def test_a_quantised_folder_is_the_fp8_routers_and_any_other_one_the_cpus(quantised: Path) -> None:
    """On a machine without a GPU both run on the CPU."""
    loaded = [stage_models.build_router(str(folder)).model for folder in (quantised, quantised.parent / "bf16")]
    assert loaded[0] is not None
    assert loaded[1] is not None

    fp8, plain = loaded[0].load(), loaded[1].load()

    assert [type(router) for router in (fp8, plain)] == [GliclassRouter, GliclassRouter]
    assert _scores(fp8) == _scores(on(REFERENCE, quantised, "r"))
    assert _scores(fp8) != _scores(plain)
    assert [scores == pytest.approx(other, abs=0.15) for scores, other in zip(_scores(fp8), _scores(plain), strict=True)] == [
        True
    ] * 3


@pytest.mark.accept
def test_an_encoder_of_24_blocks_is_captured_whole(tmp_path: Path) -> None:
    """As many as the article's model has, at a reduced width: 168 FP8 products, and nothing that a graph refuses."""
    quantise(checkpoints.gliclass(tmp_path / "bf16", blocks=24), tmp_path / "fp8")
    plain, graphs = (on(place, tmp_path / "fp8", "r", [64, 128]) for place in (REFERENCE, ON_GRAPHS))
    asked = (checkpoints.TEXTS, checkpoints.LABELS, Budget.of(UUID(int=1), 60))

    for scores, expected in zip(graphs.route(*asked), plain.route(*asked), strict=True):
        assert scores == pytest.approx(expected, abs=0.03)


class _Lost:
    """What is captured, on a device that is lost after some replays."""

    def __init__(self, inner: Captured, left: list[int]) -> None:
        self.output = inner.output
        self._inner = inner
        self._left = left

    def replay(self) -> None:
        self._left[0] -= 1
        if self._left[0] < 0:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        self._inner.replay()


class _LostAfter(RecordingGraphs):
    def __init__(self, replays: int) -> None:
        super().__init__()
        self._left = [replays]

    def capture(self, region: Callable[[], torch.Tensor]) -> Any:
        return _Lost(super().capture(region), self._left)


class _Refusing(RecordingGraphs):
    def capture(self, region: Callable[[], torch.Tensor]) -> Any:
        raise GpuRefused("CUDA cannot capture this.")


@pytest.mark.parametrize(
    "place",
    [
        Placement("cpu", "torch", _Refusing),
        Placement("cpu", "torch", lambda: _LostAfter(0)),
        Placement("cpu", "torch", lambda: _LostAfter(2)),
    ],
    ids=["not loaded", "lost at once", "lost within a batch"],
)
def test_what_the_gpu_does_not_answer_the_cpu_does(quantised: Path, place: Placement) -> None:
    router = fp8_router(quantised, revision="r", place=place)

    assert isinstance(router, FallbackRouter)
    assert _scores(router) == _scores(on(REFERENCE, quantised, "r"))


def test_a_bucket_above_what_the_model_reads_leaves_the_cpu(quantised: Path) -> None:
    with pytest.raises(GpuUnfit, match="above the 512"):
        on(ON_GRAPHS, quantised, "r", [64, 1_024])

    router = fp8_router(quantised, revision="r", buckets=[64, 1_024], place=ON_GRAPHS)

    assert isinstance(router, FallbackRouter)
    assert router._first_again_at == math.inf
    assert _scores(router) == _scores(on(REFERENCE, quantised, "r"))


def _damaged(quantised: Path, folder: Path) -> Path:
    shutil.copytree(quantised, folder)
    weights = folder / WEIGHTS_FILE
    data = bytearray(weights.read_bytes())
    data[-100] ^= 1
    weights.write_bytes(data)
    return folder


def test_a_damaged_checkpoint_is_no_router_anywhere(quantised: Path, tmp_path: Path) -> None:
    with pytest.raises(StageUnfit, match="not the one that its record"):
        fp8_router(_damaged(quantised, tmp_path / "damaged"), revision="r", place=ON_GRAPHS)


@pytest_asyncio.fixture(params=["reference", "graphs", "lost"])
async def served(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path, quantised: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[App]:
    """An app whose router is the quantised one: on this machine as it is, and as if it had a GPU, a sound and a broken one."""
    gpus = {"graphs": ON_GRAPHS, "lost": Placement("cpu", "torch", lambda: _LostAfter(1))}
    if request.param in gpus:
        monkeypatch.setattr(fp8_router_module, "gpu", lambda folder: gpus[request.param])
    async with apps.app(database_url, tmp_path / "app", router=str(quantised)) as app:
        await app.models.warm()
        yield app


async def _compacted(app: App) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    async with apps.client(app, await apps.new_tenant(app)) as http:
        answer = await http.post("/v1/compactions", json={"session": "s", "window": {"messages": WINDOW}})
        assert answer.status_code == 201, answer.text
        entries = await _entries(http, answer.json()["manifest_id"])
        return answer.json(), entries, (await http.get("/readyz?verbose")).json()


async def _entries(http: httpx.AsyncClient, manifest_id: str) -> list[dict[str, Any]]:
    found = await http.get(f"/v1/manifests/{manifest_id}/entries", params={"text": "true"})
    entries: list[dict[str, Any]] = found.json()["entries"]
    return entries


async def test_each_entry_says_what_the_router_found_wherever_it_ran(served: App) -> None:
    _, entries, ready = await _compacted(served)

    assert [(entry["route"], entry["reason"]) for entry in entries] == [
        ("keep", "protected:address"),
        ("keep", "drop:off"),
        ("keep", "compressor:unavailable"),
        ("keep", "router:keep"),
    ]
    assert [max(entry["scores"], key=entry["scores"].get) for entry in entries[1:]] == ["chatter", "wordy", "exact"]
    assert [entry["text"] for entry in entries] == [message["content"] for message in WINDOW]
    assert ready["failing"] == []


async def test_without_an_answer_from_anywhere_every_text_is_kept_and_says_why(
    database_url: str, tmp_path: Path, quantised: Path
) -> None:
    broken = _damaged(quantised, tmp_path / "damaged")
    async with apps.app(database_url, tmp_path / "app", router=str(broken)) as app:
        answer, entries, ready = await _compacted(app)

    assert [(entry["route"], entry["reason"]) for entry in entries[1:]] == [("keep", "router:failed")] * 3
    assert [entry["text"] for entry in entries] == [message["content"] for message in WINDOW]
    assert answer["warnings"]
    assert "router" in ready["failing"]
