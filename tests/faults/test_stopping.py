"""SIGTERM while the embedder will not be done in time: the process ends within its grace, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coatcheck.ops.watchdog import EXIT_STUCK
from tests.faults.served import Service, left_pending, settled
from tests.faults.slow_service import BEGUN
from tests.folders import open_folder
from tests.windows import request, window

GRACE_S = 8.0


class SlowService(Service):
    """A service whose embedder is slow."""

    COMMAND = (sys.executable, "-c", "from tests.faults.slow_service import serve; serve()")


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as one:
        yield one


def test_sigterm_with_projections_under_way_ends_within_the_grace_and_loses_nothing(folder: Path) -> None:
    slow = SlowService(folder, COATCHECK_DRAIN_GRACE_S=str(GRACE_S))
    waits, left = request("waits", window(mark="waits")), request("left", window(mark="left"))
    try:
        slow.start()
        with slow.client() as http, ThreadPoolExecutor(1) as other:
            pending = left_pending(http, left)
            answer = other.submit(http.post, "/v1/compactions", json=waits)
            while http.get("/readyz?verbose").json()["queue"]["pending"] < 2:
                time.sleep(0.05)

            asked_at = time.monotonic()
            slow.terminate()
            status = slow.ended(60)
            took_s = time.monotonic() - asked_at
            told = answer.result()
    except BaseException as error:
        error.add_note(slow.said())
        slow.end()
        raise

    assert (folder / BEGUN).stat().st_size >= 1
    assert pending.json()["type"].endswith(":projection-pending")
    assert (status, took_s < GRACE_S) == (0, True), (status, took_s, slow.said())
    assert (told.status_code, told.json()["retryable"]) == (503, True)
    quick = Service(folder)
    quick.start()
    with quick.client() as http:
        for body in (waits, left):
            assert http.post("/v1/compactions", json=body).json()["segments"]["total"] > 0
    assert settled(quick)["findings_total"] == 0
    quick.close()


@pytest.mark.parametrize(
    ("then", "status"),
    [
        ("time.sleep(60)", EXIT_STUCK),
        ("pool.submit(time.sleep, 60), last.closed()", 0),
        ("threading.Thread(target=time.sleep, args=(60,), daemon=True).start(), last.closed()", 0),
        ("last.closed()", 0),
    ],
    ids=["nothing closes", "a thread that the interpreter waits for", "a thread that it would abort under", "all is over"],
)
def test_the_process_ends_within_the_grace_whatever_still_runs(then: str, status: int) -> None:
    code = (
        "import threading, time; from concurrent.futures import ThreadPoolExecutor; from coatcheck.app.stopping import LastResort\n"
        f"pool = ThreadPoolExecutor(1); last = LastResort(1.0); last.begin(); {then}"
    )

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)

    assert ended.returncode == status
    assert (b"not stopped within the grace" in ended.stdout + ended.stderr) is (status == EXIT_STUCK)
