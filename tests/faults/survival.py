"""What must hold after a crash, checked through the routes against what the clients noted."""

from __future__ import annotations

import json
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.faults.load import SESSIONS, doomed_body, shared_body
from tests.faults.served import Service

SAMPLE = 40
"""Handoffs read again after each crash, beside the last few; all of them at the end."""
_MARK = re.compile(r"Find out why service (\w+) fails")


@dataclass
class Figures:
    """What a series of crashes came to."""

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    duplicates: int = 0
    erased: int = 0
    came_back: int = 0
    starts_s: list[float] = field(default_factory=list)
    of_its_own_s: list[float] = field(default_factory=list)
    """The same without what other processes ran in the service's place."""

    def __str__(self) -> str:
        slowest = max(self.starts_s, default=0.0)
        middle = sorted(self.starts_s)[len(self.starts_s) // 2] if self.starts_s else 0.0
        return (
            f"{self.kills} kills: {self.acknowledged} handoffs acknowledged, {self.lost} lost, {self.duplicates} duplicates; "
            f"{self.erased} erasures, {self.came_back} came back; ready again in {middle:.1f} s, at worst {slowest:.1f} s "
            f"({max(self.of_its_own_s, default=0.0):.1f} s less what others ran in its place)"
        )


class Clients:
    """Two processes that hand in the same windows, and one that erases; and what they noted."""

    def __init__(self, service: Service, folder: Path) -> None:
        self._notes = {name: folder / f"{name}.notes" for name in ("one", "two", "eraser")}
        self._processes = {
            name: service.beside("tests.faults.load", str(path), "erase" if name == "eraser" else "hand-in")
            for name, path in self._notes.items()
        }

    def notes(self, name: str) -> list[dict[str, Any]]:
        path = self._notes[name]
        lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def acknowledged(self) -> dict[int, dict[str, Any]]:
        """Every handoff that a client got, by the window's number. Both clients must have got the same."""
        found: dict[int, dict[str, Any]] = {}
        for name in ("one", "two"):
            for note in self.notes(name):
                if "acknowledged" in note:
                    known = found.setdefault(note["acknowledged"], note)
                    assert known["manifest_id"] == note["manifest_id"], "two clients got two handoffs for one window"
                    assert known["text"] == note["text"]
        return found

    def erasures(self) -> tuple[dict[int, dict[str, Any]], set[int]]:
        """What the eraser made, by number, and the numbers whose DELETE was answered."""
        notes = self.notes("eraser")
        return {note["made"]: note for note in notes if "made" in note}, {note["erased"] for note in notes if "erased" in note}

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nobody sends anything new within the block."""
        for process in self._processes.values():
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in self._processes.values():
                process.send_signal(signal.SIGCONT)

    def assert_working(self) -> None:
        for name, process in self._processes.items():
            assert process.poll() in (None, 0), (name, self.notes(name)[-1:])

    def wait_for_progress(self, windows: int, limit_s: float = 60) -> None:
        """Until so many more windows are acknowledged, or the limit (a service that is dead makes none)."""
        goal, give_up_at = len(self.acknowledged()) + windows, time.monotonic() + limit_s
        while len(self.acknowledged()) < goal and time.monotonic() < give_up_at:
            time.sleep(0.05)

    def stop(self, limit_s: float = 60) -> None:
        """Each finishes what it began: every retry completes."""
        for path in self._notes.values():
            path.with_name(f"{path.name}.stop").touch()
        for name, process in self._processes.items():
            assert process.wait(limit_s) == 0, (name, self.notes(name)[-1:])

    def kill(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()


@contextmanager
def clients(service: Service, folder: Path) -> Iterator[Clients]:
    """Working until the block ends."""
    them = Clients(service, folder)
    try:
        yield them
    finally:
        them.kill()


def check(service: Service, them: Clients, figures: Figures, *, everything: bool = False) -> None:
    """After a restart: acknowledged handoffs stand, nothing stands twice, nothing erased is back."""
    them.assert_working()
    with them.paused(), service.client() as http:
        acknowledged = them.acknowledged()
        made, erased = them.erasures()
        numbers = sorted(acknowledged)
        chosen = numbers if everything else [*numbers[-5:], *random.sample(numbers, min(SAMPLE, len(numbers)))]
        figures.lost += sum(1 for number in chosen if not _stands(http, acknowledged[number]))
        gone = sorted(erased) if everything else sorted(erased)[-5:]
        figures.came_back += sum(1 for number in gone if _is_back(http, made[number]))
        stored = _stored(http) if everything else None
        count = sum(stored.values()) if stored is not None else sum(s["manifests"] for s in _sessions(http) if _is_shared(s))
    if stored is not None:
        figures.duplicates += sum(1 for times in stored.values() if times > 1)
        figures.lost += len(set(numbers) - set(stored))
        # What survives is what was sent first.
        assert set(stored) == set(range(len(stored))), sorted(stored)
    # Both send in order, so of what was not acknowledged there can be no more than the one window that came next.
    assert len(numbers) <= count <= len(numbers) + 1, (len(numbers), count)
    figures.acknowledged, figures.erased = len(acknowledged), len(erased)
    assert (figures.lost, figures.duplicates, figures.came_back) == (0, 0, 0), str(figures)


def check_windows(service: Service, them: Clients) -> None:
    """At the end: each acknowledged window comes back as it was handed in, and what was erased is found by no question."""
    made, erased = them.erasures()
    with service.client() as http:
        for number, note in them.acknowledged().items():
            back = http.get(f"/v1/manifests/{note['manifest_id']}/window").json()["messages"]
            assert back == shared_body(number)["window"]["messages"]
            again = http.post("/v1/compactions", json=shared_body(number))
            assert (again.status_code, again.json()["handoff"]["text"]) == (200, note["text"])
        for number in erased:
            assert http.post("/v1/compactions", json=doomed_body(number, "a")).status_code == 410
            found = http.post("/v1/recall", json={"query": f"GET /doomed{number}a/health failed", "top_k": 20}).json()
            assert f"doomed{number}a" not in found["rendered"]
            assert made[number]["manifest_id"] not in [hit["manifest_id"] for hit in found["hits"]]


def _stands(http: httpx.Client, note: dict[str, Any]) -> bool:
    answer = http.get(f"/v1/manifests/{note['manifest_id']}")
    return answer.status_code == 200 and answer.json()["handoff"]["text"] == note["text"]


def _is_back(http: httpx.Client, note: dict[str, Any]) -> bool:
    return http.get(f"/v1/{note['what']}s/{note[note['what'] + '_id']}").status_code != 410


def _stored(http: httpx.Client) -> Counter[int]:
    """How many runs there are of each of the shared windows, whoever was told of them."""
    stored: Counter[int] = Counter()
    sessions = [session for session in _sessions(http) if _is_shared(session)]
    assert len({session["name"] for session in sessions}) == len(sessions)
    for session in sessions:
        marks = _MARK.findall(http.get(f"/v1/sessions/{session['session_id']}/export").text)
        stored.update(int(mark.removeprefix("load")) for mark in marks)
    return stored


def _is_shared(session: dict[str, Any]) -> bool:
    return session["name"] in {f"load/{number}" for number in range(SESSIONS)}


def _sessions(http: httpx.Client) -> list[dict[str, Any]]:
    sessions: list[dict[str, Any]] = []
    token: str | None = ""
    while token is not None:
        page = http.get("/v1/sessions", params={"page_size": 100, **({"page_token": token} if token else {})}).json()
        sessions += page["sessions"]
        token = page["next_page_token"]
    return sessions
