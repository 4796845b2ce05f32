"""Real checkpoints of every stage, named by the settings, through the HTTP door: what each entry says of its route.

The router is trained for a second on the texts of the window, and the gate says what it is built to: so what comes is known.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from coatcheck.app.compose import App
from coatcheck.compaction.policy_document import shipped
from tests import apps
from tests.torch import tiny, tiny_transformers, token_classifiers

LABELS = shipped().label_texts
FACT = "this belongs to the painter now"
STAGES = ("router", "compressor", "entailment", "summariser")
CHATTER = "how nice that is, well done"
LONG = " ".join(
    f"Well, the {who} actually just walked along the quiet {where} and he simply remembered the old story of it. Of course "
    f"the teacher was really there as well, and she just smiled at the {where}, which was very beautiful in that light."
    for who, where in (("gardener", "river"), ("painter", "harbour"), ("neighbour", "market"), ("brother", "garden"))
)
WINDOW = [
    {"role": "user", "content": "The port is 8443 and it stays."},
    {"role": "assistant", "content": CHATTER},
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": FACT},
]


def _router(folder: Path) -> str:
    texts = {LONG: LABELS[2], CHATTER: LABELS[3], FACT: LABELS[0]}
    model, tokenizer = tiny.gliclass(folder, list(texts), LABELS)
    tiny.train_gliclass(model, tokenizer, texts, LABELS, steps=80)
    tiny.save(model, tokenizer, folder)
    return str(folder)


def _gate(folder: Path, scores: tuple[float, float, float]) -> str:
    tiny_transformers.always(folder, scores)
    return str(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("checkpoints")
    tiny_transformers.summariser(folder / "summariser")
    token_classifiers.bert(folder / "compressor", [LONG])
    return {
        "router": _router(folder / "router"),
        "compressor": str(folder / "compressor"),
        "entailment": _gate(folder / "entailment", (4.0, 0.0, 0.0)),
        "summariser": str(folder / "summariser"),
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(database_url: str, tmp_path_factory: pytest.TempPathFactory, checkpoints: dict[str, str]) -> AsyncIterator[App]:
    async with apps.app(database_url, tmp_path_factory.mktemp("app"), **checkpoints) as app:
        await app.models.warm()
        yield app


async def _compacted(http: httpx.AsyncClient) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    answer = await http.post("/v1/compactions", json={"session": "s", "window": {"messages": WINDOW}})
    assert answer.status_code == 201, answer.text
    manifest = f"/v1/manifests/{answer.json()['manifest_id']}"
    entries = (await http.get(f"{manifest}/entries", params={"text": "true"})).json()["entries"]
    return answer.json(), entries, (await http.get(manifest)).json()


async def test_what_each_stage_said_stands_beside_the_text_which_is_kept_exactly(served: App) -> None:
    async with apps.client(served, await apps.new_tenant(served)) as http:
        answer, entries, manifest = await _compacted(http)
        ready = (await http.get("/readyz?verbose")).json()

    assert [(entry["route"], entry["reason"]) for entry in entries] == [
        ("keep", "protected:address"),
        ("keep", "drop:off"),
        ("compress", "reduction:accepted"),
        ("keep", "router:keep"),
    ]
    assert [entry["text"] for entry in entries] == [message["content"] for message in WINDOW]
    assert [entry["scores"] is None for entry in entries] == [True, False, False, False]
    assert [max(entry["scores"], key=entry["scores"].get) for entry in entries[1:]] == ["chatter", "wordy", "exact"]
    assert entries[2]["reduced_sha256"]
    assert (entries[2]["verdicts"]["facts"], entries[2]["verdicts"]["entailment"]) == ("kept", "entailment")
    assert answer["segments"]["compress"] == 1
    assert {stage: manifest["revisions"][stage].partition("@")[0] for stage in STAGES} == {stage: stage for stage in STAGES}
    assert (ready["status"], ready["failing"], answer["warnings"]) == ("ready", [], [])


@pytest.mark.parametrize("scores", [(0.0, 4.0, 0.0), (0.1, 0.0, 0.0)])
async def test_a_gate_that_does_not_say_entailment_by_its_lead_leaves_the_exact_text(
    database_url: str, tmp_path: Path, checkpoints: dict[str, str], scores: tuple[float, float, float]
) -> None:
    doubtful = {**checkpoints, "entailment": _gate(tmp_path / "entailment", scores)}
    async with apps.app(database_url, tmp_path / "app", **doubtful) as app, apps.client(app, await apps.new_tenant(app)) as http:
        _, entries, _ = await _compacted(http)

    assert (entries[2]["route"], entries[2]["reason"], entries[2]["reduced_sha256"]) == ("keep", "reduction:unentailed", None)
    assert entries[2]["text"] == LONG
