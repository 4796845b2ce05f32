"""A client as a process of its own: hands in windows in order, each until it is acknowledged, whatever the service does.

    python -m tests.faults.load NOTES hand-in       the same windows, in the same order, as every other such process
    python -m tests.faults.load NOTES erase         windows of its own, each erased while the next is being handed in

What it learns goes to NOTES, one JSON line at once; it stops in order when a file NOTES.stop appears.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from coatcheck_client.discovery import data_dir
from tests.windows import request, window

SESSIONS = 3


def main() -> None:
    client = Client(Path(sys.argv[1]))
    work = {"hand-in": hand_in, "erase": erase}[sys.argv[2]]
    number = 0
    while not client.is_to_stop:
        work(client, number)
        number += 1


def shared_body(number: int) -> dict[str, Any]:
    """The nth window that every client hands in."""
    return request(f"load/{number % SESSIONS}", window(calls=2, filler=6, mark=f"load{number}"))


def doomed_body(number: int, part: str) -> dict[str, Any]:
    """Windows of the nth session that is erased again."""
    return request(f"doomed/{number}", window(calls=2, filler=6, mark=f"doomed{number}{part}"))


def hand_in(client: Client, number: int) -> None:
    client.note(begun=number)
    answer = client.until_answered("POST", "/v1/compactions", shared_body(number), done=(200, 201))
    handoff = answer.json()["handoff"]
    client.note(acknowledged=number, manifest_id=answer.json()["manifest_id"], sha256=handoff["sha256"], text=handoff["text"])


def erase(client: Client, number: int) -> None:
    """A session, or every other time a manifest, is erased while another window of the session is being handed in."""
    made = client.until_answered("POST", "/v1/compactions", doomed_body(number, "a"), done=(200, 201)).json()
    what = "session" if number % 2 else "manifest"
    client.note(made=number, what=what, manifest_id=made["manifest_id"], session_id=made["session_id"])
    other = doomed_body(number, "b")
    beside = threading.Thread(target=lambda: client.until_answered("POST", "/v1/compactions", other, done=(200, 201, 410)))
    beside.start()
    client.note(asked=number)
    client.until_answered("DELETE", f"/v1/{what}s/{made[f'{what}_id']}", None, done=(204, 410))
    client.note(erased=number)
    beside.join()


class Client:
    """Finds the service anew for each attempt, since each start of it listens somewhere else."""

    def __init__(self, notes: Path) -> None:
        self._notes = open(notes, "a", encoding="utf-8")  # noqa: SIM115 - as long as the process
        self._stop = notes.with_name(f"{notes.name}.stop")
        self._http = httpx.Client(timeout=30)
        self._lock = threading.Lock()

    @property
    def is_to_stop(self) -> bool:
        return self._stop.exists()

    def note(self, **what: object) -> None:
        with self._lock:
            self._notes.write(json.dumps({"at": time.time(), **what}) + "\n")
            self._notes.flush()

    def until_answered(self, method: str, path: str, body: dict[str, Any] | None, done: tuple[int, ...]) -> httpx.Response:
        """Asks again while the service is away or says that it helps. Any other answer than ``done`` ends this process."""
        while True:
            answer = self._once(method, path, body)
            if answer is not None and answer.status_code in done:
                return answer
            if answer is not None and not answer.json()["retryable"]:
                self.note(unexpected=answer.status_code, method=method, path=path, body=answer.text)
                os._exit(1)
            time.sleep(0.2)

    def _once(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response | None:
        folder = data_dir()
        try:
            url = json.loads((folder / "run.json").read_text("utf-8"))["url"]
            key = (folder / "local.key").read_text("ascii").strip()
            return self._http.request(method, f"{url}{path}", json=body, headers={"Authorization": f"Bearer {key}"})
        except (FileNotFoundError, ValueError, httpx.TransportError):
            return None


if __name__ == "__main__":
    main()
