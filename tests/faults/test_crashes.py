"""The long proof: kill -9 at every named point and at fifty random moments, under load, with fsync on.

Two client processes hand in the same windows, a third one erases what it hands in, all the time; after each crash the service
starts on the same data directory, and what the clients noted is compared with what it has.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.points import named
from tests.faults.served import Service, service, settled
from tests.faults.survival import Clients, Figures, check, check_windows, clients

pytestmark = pytest.mark.accept

READY_AGAIN_S = 10
"""By the clock on a machine of its own; elsewhere without the time that other processes took."""
RANDOM_KILLS = 50
KILLS_WHILE_STARTING = 10
FULL_CHECK_EVERY = 10
LEASE_S = "3"
"""Short, so that the sweep that follows an erasure of unfinished work comes soon."""


class Series:
    """One data directory through many crashes."""

    def __init__(self, service: Service, them: Clients, figures: Figures) -> None:
        self.service = service
        self.them = them
        self.figures = figures

    def crash_at(self, crash_points: str, **environment: str) -> None:
        """Starts with the points armed, and waits until one of them is met, be it before anybody could be served."""
        if self.service.start(crash_points, **environment) is not None:
            self.service.dies()
        self.figures.kills += 1

    def again(self, **environment: str) -> None:
        """Starts as ever and checks everything that must have survived."""
        started_s = self.service.start(None, **environment)
        assert started_s is not None
        self.figures.starts_s.append(started_s)
        self.figures.of_its_own_s.append(started_s - self.service.kept_waiting_s())
        check(self.service, self.them, self.figures, everything=self.figures.kills % FULL_CHECK_EVERY == 0)

    def kill(self) -> None:
        self.service.kill()
        self.figures.kills += 1


@contextmanager
def series(capsys: pytest.CaptureFixture[str], **environment: str) -> Iterator[Series]:
    """Under load until the block ends; then every retry completes, rows and points agree, and the figures are printed."""
    figures = Figures()
    with service(**{"COATCHECK_LEASE_S": LEASE_S, **environment}) as served:
        served.start()
        with clients(served, served.folder) as them:
            them.wait_for_progress(3)
            yield Series(served, them, figures)
            them.wait_for_progress(3)
            them.stop()
        scanned = settled(served)
        check(served, them, figures, everything=True)
        check_windows(served, them)
    with capsys.disabled():
        print(f"\n{figures}; scan with index: {scanned['progress']['segments']} segments, {scanned['findings_total']} findings")
    assert scanned["findings_total"] == 0, scanned
    assert figures.acknowledged > figures.kills
    assert max(figures.of_its_own_s) < READY_AGAIN_S


def test_kill_at_every_named_point(capsys: pytest.CaptureFixture[str]) -> None:
    with series(capsys) as one:
        for point in (*named("compaction"), *named("erasure")):
            one.kill()
            one.crash_at(f"{point}=kill@{random.randint(1, 4)}")
            one.again()

        for point in named("renewal"):
            one.kill()
            one.crash_at(f"before-acknowledge=sleep:3,{point}=kill", COATCHECK_LEASE_S="1")
            one.again()

        for point in named("reconciling"):
            one.kill()
            one.crash_at("before-upsert=kill")
            one.crash_at(f"{point}=kill")
            one.again()

        assert named("start") == ["after-leases-voided", "inside-recovery", "before-fill"]
        one.kill()
        one.crash_at("after-leases-voided=kill")
        one.again()
        one.kill()
        shutil.rmtree(one.service.data_dir / "index")
        one.crash_at("inside-recovery=kill")
        one.again()
        one.kill()
        one.crash_at("before-fill=kill", COATCHECK_EMBEDDER="none")
        one.again(COATCHECK_EMBEDDER="none")
        one.kill()
        one.again()


def test_kill_at_fifty_random_moments(capsys: pytest.CaptureFixture[str]) -> None:
    with series(capsys) as one:
        for _ in range(RANDOM_KILLS):
            time.sleep(random.uniform(0, 2))
            one.kill()
            one.again()
        for _ in range(KILLS_WHILE_STARTING):
            one.kill()
            one.service.begin()
            time.sleep(random.uniform(0, 5))
            one.kill()
            one.again()


def test_kill_at_random_moments_with_the_packaged_embedder(capsys: pytest.CaptureFixture[str]) -> None:
    with series(capsys, COATCHECK_EMBEDDER="auto") as one:
        for _ in range(5):
            time.sleep(random.uniform(0, 4))
            one.kill()
            one.again()
