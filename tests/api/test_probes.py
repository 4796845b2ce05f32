"""The probes: no credential, no content, and the truth."""

from __future__ import annotations

import asyncio
import dataclasses

import httpx
import numpy as np
import pytest

from coatcheck.api import probes
from coatcheck.api.probes import RecentReadiness
from coatcheck.gpu.offload import Offload
from coatcheck.gpu.offload.modelled import ModelledStreams, memory
from coatcheck.memory.readiness import ReadinessReport
from coatcheck.ops.metrics import Metrics
from coatcheck.ops.progress import ProgressBoard, Stage, standard_stages
from tests.api.bench import Bench
from tests.clocks import Clock

READY = ReadinessReport(True, False, {"postgresql": "ok", "index": "ok"}, {"fsync": "on"}, 0.0, 0, 0, 1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bench(bench: Bench, clock: Clock) -> Bench:
    """With the probes, over a board whose time the test moves."""
    bench.board = ProgressBoard(standard_stages(60), clock)
    bench.inner.include_router(probes.router)
    state = bench.inner.state
    state.gate, state.progress, state.metrics = bench.gate, bench.board, Metrics(bench.board)
    reports(bench, READY)
    return bench


def reports(bench: Bench, report: ReadinessReport) -> None:
    """From now on the service's readiness is this."""

    async def ask() -> ReadinessReport:
        return report

    bench.inner.state.readiness = RecentReadiness(ask)


async def test_an_idle_service_is_alive_and_ready(client: httpx.AsyncClient) -> None:
    live, ready = await client.get("/livez"), await client.get("/readyz")

    assert (live.status_code, live.json()) == (200, {"status": "alive", "stuck": []})
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


async def test_a_stuck_vital_stage_fails_liveness_by_name(bench: Bench, clock: Clock, client: httpx.AsyncClient) -> None:
    bench.board.begin("project")
    clock.now += 61

    answer = await client.get("/livez")

    assert (answer.status_code, answer.json()) == (503, {"status": "stuck", "stuck": ["project"]})


async def test_a_stuck_optional_stage_is_degraded_and_still_ready(bench: Bench, clock: Clock, client: httpx.AsyncClient) -> None:
    bench.board.begin("rerank")
    clock.now += 61

    live, ready = await client.get("/livez"), await client.get("/readyz?verbose")

    assert live.status_code == 200
    assert (ready.status_code, ready.json()["status"], ready.json()["stuck"]) == (200, "degraded", ["rerank"])


async def test_a_stage_whose_last_attempt_failed_is_degraded_until_one_succeeds(bench: Bench, client: httpx.AsyncClient) -> None:
    piece = bench.board.begin("rerank")
    piece.failed()
    piece.done()
    failed = await client.get("/readyz?verbose")

    bench.board.advance("rerank")

    assert (failed.status_code, failed.json()["status"], failed.json()["failing"]) == (200, "degraded", ["rerank"])
    assert (await client.get("/readyz")).json()["status"] == "ready"


async def test_a_dependency_that_is_down_is_named_and_not_ready(bench: Bench, client: httpx.AsyncClient) -> None:
    down = dataclasses.replace(READY, ready=False, checks={"postgresql": "ok", "index": "index-unavailable"})
    reports(bench, down)

    live, ready = await client.get("/livez"), await client.get("/readyz?verbose=1")

    assert live.status_code == 200
    assert (ready.status_code, ready.json()["status"]) == (503, "not-ready")
    assert ready.json()["checks"] == {"postgresql": "ok", "index": "index-unavailable", "drain": "ok"}


async def test_a_draining_service_is_alive_and_not_ready(bench: Bench, client: httpx.AsyncClient) -> None:
    bench.gate.drain()

    live, ready = await client.get("/livez"), await client.get("/readyz?verbose")

    assert live.status_code == 200
    assert (ready.status_code, ready.json()["status"]) == (503, "draining")
    assert ready.json()["checks"]["drain"] == "draining"


async def test_the_details_are_durability_queue_and_checks(bench: Bench, client: httpx.AsyncClient) -> None:
    reports(bench, ReadinessReport(True, False, {"postgresql": "ok"}, {"fsync": "on"}, 12.34, 7, 1, 5))

    short, long = await client.get("/readyz"), await client.get("/readyz?verbose")

    assert short.json() == {"status": "ready"}
    assert long.json()["durability"] == {"fsync": "on"}
    assert long.json()["queue"] == {"pending": 7, "quarantined": 1, "oldest_age_s": 12.3}


async def test_progress_shows_ages_and_counts(bench: Bench, clock: Clock, client: httpx.AsyncClient) -> None:
    bench.board.begin("plan")
    clock.now += 5
    with bench.board.stage("persist"):
        pass
    clock.now += 1

    stages = (await client.get("/progressz")).json()["stages"]

    assert stages["plan"] == {
        "vital": True, "in_flight": 1, "oldest_age_s": 6.0, "completions": 0, "last_completion_age_s": None,
        "stuck": False, "failing": False, "loading": False,
    }  # fmt: skip
    assert stages["persist"]["last_completion_age_s"] == 1.0
    assert stages["embed"]["vital"] is False


async def test_metrics_are_prometheus_text(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "coatcheck_stage_in_flight" in answer.text


async def test_strangers_cannot_make_the_readiness_probe_work_harder(clock: Clock) -> None:
    asked = 0

    async def ask() -> ReadinessReport:
        nonlocal asked
        asked += 1
        return READY

    recent = RecentReadiness(ask, recent_s=1, monotonic=clock)
    for _ in range(5):
        await recent.report()
    clock.now += 1
    await recent.report()

    assert asked == 2


async def test_liveness_follows_a_vital_offload(bench: Bench, clock: Clock, client: httpx.AsyncClient) -> None:
    """A host says that offload is vital; its passes are pieces of that stage."""
    streams = ModelledStreams()
    stream = streams.stream("model")
    bench.board = bench.inner.state.progress = ProgressBoard([*standard_stages(60), Stage("offload", True, 60)], clock)
    offload = Offload(streams, lambda: memory(1), lambda inputs, rows: None, bench.board, depth=1, scheduler_depth=1)
    offload.start()
    buffer = np.zeros(1, np.int64)
    offload.submit(buffer, np.zeros(1, np.float32), written_on=stream, consumer=stream, limit_s=60)
    clock.now += 61

    stuck = await client.get("/livez")
    while not offload.ledger.is_empty():
        if stream.can_go_on():
            stream.go_on()
        offload.ledger.reap()
        await asyncio.sleep(0.001)
    offload.close()

    assert (stuck.status_code, stuck.json()["stuck"]) == (503, ["offload"])
    assert (await client.get("/livez")).status_code == 200
