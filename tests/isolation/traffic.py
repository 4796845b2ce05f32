"""Everybody at once: requests of every kind by five principals of two tenants, drawn by a seed, a part of them cancelled half way.

Each session's texts bear a canary of their own, which says whose it is; whatever comes back is read for canaries that are not for
whoever asked.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from tests import rpc
from tests.caching import circumstances
from tests.isolation.town import Person, Town
from tests.windows import request, window

CANARY = re.compile(r"cnry-(\w+)-(\w+)")
KINDS = ("conversation", "team", "public")
TEAM = {"alice", "carol"}
TENANT = {"alice", "bob", "carol", "operator"}
AT_ONCE = 12
CANCELLED = 0.15
"""Of all requests; after so long at most:"""
PATIENCE_S = 0.06


def canary(person: str, kind: str) -> str:
    return f"cnry-{person}-{kind}"


def may_read(reader: str, person: str, kind: str) -> bool:
    """Whether a canary may reach a reader."""
    if reader == person:
        return True
    if kind == "team":
        return {reader, person} <= TEAM
    return kind == "public" and {reader, person} <= TENANT


class Traffic:
    """The town's requests. ``misplaced`` says of each canary that came to the wrong person where it was."""

    def __init__(self, town: Town, seed: int) -> None:
        self.town = town
        self.seed = seed
        self.answered: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.canaries_seen = 0
        self.misplaced: list[str] = []
        self._random = random.Random(seed)
        self._known: dict[str, list[dict[str, Any]]] = {name: [] for name in town.everybody}
        self._asks: list[tuple[int, Callable[[Person], Awaitable[httpx.Response]]]] = [
            (3, self._compact), (4, self._recall), (2, self._recall_of_another), (2, self._manifest), (2, self._entries),
            (2, self._window), (2, self._of_another), (1, self._export), (1, self._list), (2, self._lookup), (2, self._store),
            (2, self._tool), (1, self._erase), (1, self._keys), (1, self._refused),
        ]  # fmt: skip

    async def run(self, count: int) -> None:
        """So many requests, several at a time."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one() -> None:
            async with gate:
                await self._one()

        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(one())

    async def _one(self) -> None:
        person = self._random.choice(list(self.town.everybody.values()))
        weights, asks = zip(*self._asks, strict=True)
        ask = self._random.choices(asks, weights)[0]
        task = asyncio.ensure_future(ask(person))
        if self._random.random() < CANCELLED:
            await asyncio.sleep(self._random.random() * PATIENCE_S)
            task.cancel()
        try:
            answer = await task
        except asyncio.CancelledError:
            self.answered["cancelled"] += 1
            return
        self.answered[ask.__name__] += 1
        self.statuses[answer.status_code] += 1
        self._look(person, ask.__name__, answer)

    def _look(self, person: Person, asked: str, answer: httpx.Response) -> None:
        for whose, kind in CANARY.findall(answer.text + str(answer.headers)):
            self.canaries_seen += 1
            if not may_read(person.name, whose, kind):
                self.misplaced.append(f"{asked}: {canary(whose, kind)} to {person.name}")

    async def _compact(self, person: Person) -> httpx.Response:
        kind = self._random.choice(KINDS)
        mark = canary(person.name, kind)
        visibility = {"team": f"team:{self.town.team_id}", "public": "public"}.get(kind, "conversation")
        if kind == "team" and person.name not in TEAM:
            visibility = "conversation"
        number = self._random.randrange(40)
        messages = [*window(calls=2, filler=6, mark=mark), {"role": "user", "name": mark, "content": f"{mark} turn {number}"}]
        messages.append({"role": "assistant", "content": f"done with {mark}"})
        body = request(f"{mark} {number % 4}", messages, visibility=visibility, focus=mark)
        # One key for everybody and everything with this number: none may be answered with another's.
        made = await person.http.post("/v1/compactions", json=body, headers={"Idempotency-Key": f"key-{kind}-{number}"})
        if made.status_code in (200, 201):
            self._known[person.name].append(made.json())
        return made

    async def _recall(self, person: Person) -> httpx.Response:
        return await person.http.post("/v1/recall", json={"query": "health failed turn", "top_k": 20})

    async def _recall_of_another(self, person: Person) -> httpx.Response:
        other = self._random.choice(list(self.town.everybody))
        query = canary(other, self._random.choice(KINDS))
        return await person.http.post("/v1/recall", json={"query": query, "top_k": 20, "rerank": "off"})

    async def _manifest(self, person: Person) -> httpx.Response:
        return await person.http.get(f"/v1/manifests/{self._run_of(person.name)}")

    async def _entries(self, person: Person) -> httpx.Response:
        return await person.http.get(f"/v1/manifests/{self._run_of(person.name)}/entries?text=true&page_size=50")

    async def _window(self, person: Person) -> httpx.Response:
        return await person.http.get(f"/v1/manifests/{self._run_of(person.name)}/window")

    async def _of_another(self, person: Person) -> httpx.Response:
        other = self._random.choice(list(self.town.everybody))
        part = self._random.choice(("", "/window", "/entries?text=true"))
        return await person.http.get(f"/v1/manifests/{self._run_of(other)}{part}")

    async def _export(self, person: Person) -> httpx.Response:
        other = self._random.choice(list(self.town.everybody))
        return await person.http.get(f"/v1/sessions/{self._of(other, 'session_id')}/export")

    async def _list(self, person: Person) -> httpx.Response:
        return await person.http.get("/v1/sessions?page_size=200")

    async def _lookup(self, person: Person) -> httpx.Response:
        return await person.http.post("/v1/cache/lookup", json=circumstances())

    async def _store(self, person: Person) -> httpx.Response:
        found = await person.http.post("/v1/cache/lookup", json=circumstances())
        body = {**circumstances(), "answer": canary(person.name, "conversation"), "scope": found.json().get("scope") or "0" * 64}
        return await person.http.post("/v1/cache/store", json=body)

    async def _tool(self, person: Person) -> httpx.Response:
        tool, arguments = self._random.choice(
            [
                ("recall_memory", {"query": "health failed turn", "top_k": 20}),
                ("read_manifest", {"manifest_id": self._run_of(self._random.choice(list(self.town.everybody)))}),
            ]
        )
        return await rpc.post(person.http, "tools/call", {"name": tool, "arguments": arguments})

    async def _erase(self, person: Person) -> httpx.Response:
        return await person.http.delete(f"/v1/manifests/{self._run_of(person.name)}")

    async def _keys(self, person: Person) -> httpx.Response:
        return await person.http.get("/v1/admin/keys?page_size=200")

    async def _refused(self, person: Person) -> httpx.Response:
        mark = canary(self._random.choice(list(self.town.everybody)), "conversation")
        return await person.http.post(
            "/v1/compactions", json={"session": mark, "window": {"messages": [{"role": mark}]}, mark: mark}
        )

    def _run_of(self, name: str) -> str:
        return self._of(name, "manifest_id")

    def _of(self, name: str, what: str) -> str:
        known = self._known[name]
        return str(self._random.choice(known)[what]) if known else "01932dea-0000-7000-8000-00000000dead"
