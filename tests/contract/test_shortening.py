"""The model stages through the HTTP door: what each entry says of its route, and that no trouble of a model costs any text.

The models are the tests' own: they stand for what runs outside of the service.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio

from coatcheck.app.compose import Foundations
from coatcheck.app.shortening import Shortening
from coatcheck.domain.budgets import Budget
from coatcheck.domain.canonical import sha256_of
from coatcheck.domain.errors import RefusedToStart, StageUnavailable
from coatcheck.domain.ports import Compressor, EntailmentGate, Router
from coatcheck.domain.routes import Route, RouteScore
from tests import apps
from tests.compaction.making import Absent, OverlapGate, TableRouter, WordDropper, prose

CHATTER = "how nice that is, well done"
COMPRESS = RouteScore(Route.COMPRESS, 0.9, 0.8)
DROP = RouteScore(Route.DROP, 0.99, 0.9)
LONG = f"{prose(30)} It is not loud there."
WINDOW = [
    {"role": "user", "content": "The port is 8443 and it stays."},
    {"role": "assistant", "content": CHATTER},
    {"role": "user", "content": LONG},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Foundations]:
    async with apps.foundations(database_url, tmp_path_factory.mktemp("foundations")) as opened:
        yield opened


@asynccontextmanager
async def _serving(on: Foundations, models: Shortening, policy: Path | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """An app with these models, and a client of a tenant of its own."""
    settings = on.settings.model_copy(update={"policy": policy})
    fitted = dataclasses.replace(on, settings=settings, models=dataclasses.replace(on.models, shortening=models))
    async with apps.app_on(fitted, alone=True) as app, apps.client(app, await apps.new_tenant(app)) as http:
        yield http


@pytest.fixture
def dropping(tmp_path: Path) -> Path:
    """A policy that lets text go."""
    path = tmp_path / "policy.yaml"
    path.write_text('version: "mine"\nrouting: {drop: {enabled: true}}\n', "utf-8")
    return path


async def _compacted(http: httpx.AsyncClient, **headers: str) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """The answer, the entries with their texts, and the manifest."""
    answer = await http.post("/v1/compactions", json={"session": "s", "window": {"messages": WINDOW}}, headers=headers)
    assert answer.status_code == 201, answer.text
    manifest = f"/v1/manifests/{answer.json()['manifest_id']}"
    entries = (await http.get(f"{manifest}/entries", params={"text": "true"})).json()["entries"]
    return answer.json(), entries, (await http.get(manifest)).json()


def _models(
    router: Router | None = None, compressor: Compressor | None = None, entailment: EntailmentGate | None = None
) -> Shortening:
    return Shortening(
        router or TableRouter({"garden": COMPRESS, "nice": DROP}),
        compressor or WordDropper(("slowly",)),
        entailment or OverlapGate(),
    )


async def test_a_text_that_passes_both_gates_is_compressed_and_can_still_be_read_exactly(on: Foundations) -> None:
    async with _serving(on, _models()) as http:
        answer, entries, manifest = await _compacted(http)

        assert [(e["route"], e["reason"]) for e in entries] == [
            ("keep", "protected:address"),
            ("keep", "drop:off"),
            ("compress", "reduction:accepted"),
        ]
        assert answer["segments"] == {"total": 3, "keep": 2, "compress": 1, "drop": 0, "already_stored": 0}
        assert [e["text"] for e in entries] == [m["content"] for m in WINDOW]
        assert entries[2]["reduced_sha256"]
        assert entries[2]["verdicts"] == {"facts": "kept", "entailment": "entailment", "margin": 0.9}
        assert entries[2]["scores"] == {"chatter": 0.1, "exact": 0.1, "unsettled": 0.1, "wordy": 0.9}
        assert [e["scores"] is None for e in entries] == [True, False, False]
        assert manifest["revisions"]["policy"].startswith("3-")
        assert {manifest["revisions"][name] for name in ("router", "compressor", "entailment")} == {
            "table-router/1", "word-dropper/1", "overlap-gate/1"
        }  # fmt: skip


async def test_stages_that_nobody_asked_for_are_no_trouble(on: Foundations) -> None:
    async with _serving(on, Shortening()) as http:
        answer, _, _ = await _compacted(http)

    assert answer["warnings"] == []


async def test_with_a_policy_that_drops_the_tombstone_stands_where_the_text_stood(on: Foundations, dropping: Path) -> None:
    async with _serving(on, _models(), dropping) as http:
        answer, entries, manifest = await _compacted(http)
        window = (await http.get(f"/v1/manifests/{answer['manifest_id']}/window")).json()

    assert (entries[1]["route"], entries[1]["reason"], entries[1]["role"]) == ("drop", "router:drop", "assistant")
    assert (entries[1]["chars"], entries[1]["text"], entries[1]["sha256"]) == (len(CHATTER), None, None)
    assert entries[1]["dropped_sha256"] == sha256_of(CHATTER)
    assert answer["segments"]["drop"] == 1
    assert window["messages"][1]["content"] == f"[DROPPED: {len(CHATTER)} characters]"
    assert manifest["revisions"]["policy"].startswith("mine-")


async def test_an_import_drops_nothing_of_what_was_kept(on: Foundations, dropping: Path) -> None:
    async with _serving(on, Shortening()) as http:
        answer, _, _ = await _compacted(http)
        lines = (await http.get(f"/v1/sessions/{answer['session_id']}/export")).content
    async with _serving(on, _models(), dropping) as http:
        taken = await http.post("/v1/import", content=lines, headers={"Content-Type": "application/x-ndjson"})
        assert taken.status_code == 200, taken.text
        (session,) = (await http.get("/v1/sessions")).json()["sessions"]
        again = (await http.get(f"/v1/sessions/{session['session_id']}/export")).content
        run = json.loads(again.splitlines()[1])
        entries = (await http.get(f"/v1/manifests/{run['manifest_id']}/entries", params={"text": "true"})).json()["entries"]

    assert [(e["reason"], e["text"]) for e in entries][1] == ("drop:off", CHATTER)
    assert run["messages"] == WINDOW


@dataclasses.dataclass
class _Standing:
    """A model that stands still for as long as it has, and is given up by its worker then."""

    revision: str = "standing/1"

    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        time.sleep(max(0.0, budget.left_s()))
        raise StageUnavailable("no answer in time")

    def compress(self, texts: Sequence[str], rate: float, budget: Budget) -> list[str]:
        self.route(texts, (), budget)
        return []


class _Nothing(TableRouter):
    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        return cast(list[Mapping[str, float]], None)


class _NotANumber(TableRouter):
    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        return [dict.fromkeys(labels, float("nan")) for _ in texts]


class _OtherLabels(TableRouter):
    def route(self, texts: Sequence[str], labels: Sequence[str], budget: Budget) -> list[Mapping[str, float]]:
        return [{"LABEL_0": 1.0} for _ in texts]


@pytest.mark.parametrize(
    ("models", "reason"),
    [
        (Shortening(), "router:unavailable"),
        (_models(router=Absent(RuntimeError("broken"))), "router:failed"),
        (_models(router=Absent(MemoryError())), "router:failed"),
        (_models(router=_Nothing({})), "router:failed"),
        (_models(router=_NotANumber({})), "router:no-scores"),
        (_models(router=_OtherLabels({})), "router:wrong-labels"),
        (_models(router=_Standing()), "router:late"),
        (_models(compressor=Absent(RuntimeError("broken"))), "compressor:failed"),
        (_models(compressor=_Standing()), "compressor:late"),
        (_models(compressor=WordDropper(("slowly", "not"))), "reduction:fact-missing:negation"),
        (Shortening(TableRouter({"garden": COMPRESS}), WordDropper(("slowly",))), "entailment:unavailable"),
        (_models(entailment=Absent(RuntimeError("broken"))), "entailment:failed"),
        (_models(entailment=OverlapGate(margin=float("nan"))), "reduction:unentailed"),
    ],
)
async def test_whatever_becomes_of_a_model_the_exact_text_is_kept_with_the_reason_within_the_deadline(
    on: Foundations, models: Shortening, reason: str
) -> None:
    async with _serving(on, models) as http:
        started = time.monotonic()
        answer, entries, _ = await _compacted(http, **{"Coatcheck-Deadline": "6"})
        took_s = time.monotonic() - started

    assert (entries[2]["route"], entries[2]["reason"], entries[2]["text"]) == ("keep", reason, LONG)
    assert {e["route"] for e in entries} == {"keep"}
    assert took_s < 6
    assert answer["segments"]["keep"] == 3


async def test_a_model_that_stands_still_holds_up_its_own_windows_and_nothing_else(on: Foundations) -> None:
    windows = 2 * on.settings.max_working + 2
    async with _serving(on, _models(router=_Standing())) as http:
        answers = [asyncio.create_task(_handed_in(http, f"stands {n}", LONG)) for n in range(windows)]
        await asyncio.sleep(0.5)

        started = time.monotonic()
        unrouted = await _handed_in(http, "goes on", "The port is 9443 and it stays. " * 40)
        found = await http.post("/v1/recall", json={"query": "which port"})
        took_s = time.monotonic() - started
        standing = [answer for answer in answers if not answer.done()]
        taken = await asyncio.gather(*answers)

    assert (unrouted, found.status_code) == (201, 200)
    assert took_s < 2
    assert len(standing) == windows
    assert set(taken) == {201}


async def _handed_in(http: httpx.AsyncClient, session: str, text: str) -> int:
    window = {"messages": [{"role": "user", "content": text}]}
    answer = await http.post("/v1/compactions", json={"session": session, "window": window}, headers={"Coatcheck-Deadline": "8"})
    return answer.status_code


async def test_a_policy_that_does_not_fit_refuses_to_start(on: Foundations, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text('version: "4"\nreduction: {rate: 2}\n', "utf-8")

    with pytest.raises(RefusedToStart, match=r"COATCHECK_POLICY.*reduction\.rate"):
        async with _serving(on, Shortening(), path):
            pass
