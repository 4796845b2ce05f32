"""What may not come back: a window that was erased, asked for by every route."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from tests.faults.pair import Scene
from tests.windows import request, window

SHARED = {"role": "user", "content": "Standing order for every service: restart nothing on staging without a ticket. " * 3}
"""A message that several windows of a session hold: one segment."""


@dataclass(frozen=True, slots=True)
class Handed:
    """A window that was handed in, under a mark that stands in each of its other messages."""

    mark: str
    body: dict[str, Any]
    answer: dict[str, Any]

    @property
    def manifest(self) -> str:
        return f"/v1/manifests/{self.answer['manifest_id']}"

    @property
    def session(self) -> str:
        return f"/v1/sessions/{self.answer['session_id']}"


def marked(mark: str) -> dict[str, Any]:
    """The request of a window with the shared message and its own."""
    return request("s", [SHARED, *window(calls=2, filler=6, mark=mark)])


async def handed(client: httpx.AsyncClient, mark: str) -> Handed:
    """A window handed in and acknowledged."""
    answer = await client.post("/v1/compactions", json=marked(mark))
    assert answer.status_code == 201, answer.text
    return Handed(mark, marked(mark), answer.json())


async def own_segments(client: httpx.AsyncClient, one: Handed) -> list[str]:
    """The segments that only this window holds."""
    entries = (await client.get(f"{one.manifest}/entries?text=true")).json()["entries"]
    return [entry["sha256"] for entry in entries if one.mark in entry["text"]]


async def assert_unreachable(at: Scene, one: Handed, segments: list[str], *, session_too: bool) -> None:
    """By no route: what was erased answers 410 by its name and is found by no question."""
    paths = [one.manifest, f"{one.manifest}/entries", f"{one.manifest}/window", *(f"/v1/segments/{sha}" for sha in segments)]
    if session_too:
        paths += [one.session, f"{one.session}/export"]
    assert {path: (await at.two.get(path)).status_code for path in paths} == dict.fromkeys(paths, 410)
    assert (await at.one.get(one.manifest)).status_code == 410
    assert (await at.two.delete(one.manifest)).status_code == 410
    assert (await at.two.post("/v1/compactions", json=one.body)).status_code == 410
    question = f"Why does service {one.mark} fail on staging? GET /{one.mark}/health failed with 500"
    found = (await at.two.post("/v1/recall", json={"query": question, "top_k": 50})).json()
    assert one.mark not in found["rendered"]
    assert not [hit for hit in found["hits"] if hit["sha256"] in segments or one.mark in hit["text"]]
    listed = (await at.two.get("/v1/sessions")).json()["sessions"]
    assert not session_too or one.answer["session_id"] not in [session["session_id"] for session in listed]


async def assert_whole(at: Scene, one: Handed) -> None:
    """The same request gives the same handoff, and the window comes back as it was handed in."""
    again = await at.two.post("/v1/compactions", json=one.body)
    assert (again.status_code, again.json()["manifest_id"]) == (200, one.answer["manifest_id"])
    assert (await at.two.get(f"{one.manifest}/window")).json()["messages"] == one.body["window"]["messages"]
    question = f"GET /{one.mark}/health on 10.2.0.1:8443 failed; standing order: restart nothing without a ticket"
    found = "".join(hit["text"] for hit in (await at.two.post("/v1/recall", json={"query": question, "top_k": 50})).json()["hits"])
    assert f"/{one.mark}/health on 10.2.0.1:8443 failed with 501" in found
    assert SHARED["content"] in found
