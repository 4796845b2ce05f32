"""A served process under load: killed three times, and at last stopped in order. The long series is in test_crashes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults import served
from tests.faults.served import Service, settled
from tests.faults.survival import Clients, Figures, check, check_windows, clients
from tests.windows import request, window

READY_AGAIN_S = 10
"""Without the time that other processes took meanwhile."""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with served.service(COATCHECK_LEASE_S="3", COATCHECK_DRAIN_GRACE_S="10") as one:
        yield one


def test_three_kills_under_load_lose_nothing_and_nothing_comes_back(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = Figures()
    service.start("after-upsert=kill@5")
    with clients(service, tmp_path) as them:
        service.dies()
        _again(service, them, figures, "after-points-erased=kill@2")
        service.dies()
        _again(service, them, figures)
        time.sleep(random.uniform(0.5, 1.5))
        service.kill()
        _again(service, them, figures)
        them.wait_for_progress(3)
        them.stop()
    scanned = settled(service)
    check(service, them, figures, everything=True)
    check_windows(service, them)

    with capsys.disabled():
        print(f"\n{figures}")
    assert scanned["findings_total"] == 0, scanned
    assert figures.acknowledged > 0
    assert max(figures.of_its_own_s) < READY_AGAIN_S


def test_sigterm_finishes_what_is_inside_and_lets_nobody_in(service: Service) -> None:
    if service.is_alive():
        service.terminate()
        service.ended(15)
    service.start("before-acknowledge=sleep:1.5")
    body = request("inside", window(mark="inside"))
    with service.client() as http, ThreadPoolExecutor(1) as other:
        answer = other.submit(http.post, "/v1/compactions", json=body)
        with service.client() as looking:
            while "inside" not in [session["name"] for session in looking.get("/v1/sessions").json()["sessions"]]:
                time.sleep(0.02)
            service.terminate()
            refused = _refused(looking, request("too-late", window(mark="late")))
        made = answer.result()
    status = service.ended(15)

    assert refused
    assert made.status_code == 201
    assert status == 0
    service.start()
    with service.client() as http:
        again = http.post("/v1/compactions", json=body)
        assert "too-late" not in [session["name"] for session in http.get("/v1/sessions").json()["sessions"]]
    assert (again.status_code, again.json()) == (200, made.json())
    assert settled(service)["findings_total"] == 0


def _refused(http: httpx.Client, body: dict[str, Any]) -> bool:
    """Whether the answer is to come again later, or there is nobody to talk to any more, be it in the middle of the request."""
    try:
        answer = http.post("/v1/compactions", json=body)
    except httpx.TransportError:
        return True
    return (answer.status_code, answer.json()["retryable"]) == (503, True)


def _again(service: Service, them: Clients, figures: Figures, crash_points: str | None = None) -> None:
    figures.kills += 1
    started_s = service.start(crash_points)
    assert started_s is not None
    figures.starts_s.append(started_s)
    figures.of_its_own_s.append(started_s - service.kept_waiting_s())
    check(service, them, figures)
