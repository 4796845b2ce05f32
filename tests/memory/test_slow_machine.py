"""A machine so slow that each step takes minutes: what computes is never taken for what stands still, and what stands still is."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
import sqlalchemy as sa

from coatcheck.app.compose import App
from coatcheck.app.models import Models
from coatcheck.app.storage import OpenedIndex
from coatcheck.compaction.planner import Planner
from coatcheck.domain.canonical import JsonObject
from coatcheck.domain.canonical import Path as JsonPath
from coatcheck.domain.messages import Reading, WireFormat
from coatcheck.domain.passages import IndexPoint, SparseVector
from coatcheck.domain.placeholders import PlaceholderKeys
from coatcheck.domain.ports import RedactedMessage, Redacting
from coatcheck.domain.scopes import TenantScope
from coatcheck.index.lexical import analyse_document
from coatcheck.memory import projection
from coatcheck.memory.planning import Planning
from coatcheck.models.hashing import HashingEmbedder
from coatcheck.models.lanes import EmbeddingLanes
from coatcheck.ops import faults
from coatcheck.ops.progress import EVENT_LOOP, ProgressBoard, standard_stages
from coatcheck.ops.slots import FairSlots
from tests import apps
from tests.compaction import making
from tests.faults.troubled_index import TroubledIndex
from tests.windows import request

LIMIT_S = 60.0
STATEMENT_S = 12.0
STEP_S = 25.0


@dataclass
class SlowMachine:
    """Its clock goes on by a step with each piece of work; the board is looked at after each."""

    now: float = 0.0
    steps: int = 0
    stuck: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.board = ProgressBoard(standard_stages(LIMIT_S), lambda: self.now)

    def works(self, seconds: float = STEP_S) -> None:
        with self.lock:
            self.now += seconds
            self.steps += 1
        # The loop is asked by the real clock whether it lives, and this one may pass minutes before it can answer.
        self.stuck += set(self.board.stuck(vital=True)) - {EVENT_LOOP}

    @contextmanager
    def database_too(self) -> Iterator[None]:
        def executed(*_: object) -> None:
            self.works(STATEMENT_S)

        sa.event.listen(sa.engine.Engine, "after_cursor_execute", executed)
        try:
            yield
        finally:
            sa.event.remove(sa.engine.Engine, "after_cursor_execute", executed)


class SlowEmbedder(HashingEmbedder):
    """An embedder of that machine."""

    def __init__(self, machine: SlowMachine) -> None:
        self.machine = machine

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        self.machine.works()
        return super().embed_passages(texts)


class SizedIndex(TroubledIndex):
    """Remembers how much text each write was made of."""

    written: list[int]

    async def upsert(self, scope: TenantScope, points: Sequence[IndexPoint]) -> None:
        self.written.append(sum(point.span.end - point.span.start for point in points))
        await super().upsert(scope, points)


@dataclass
class OneByOne:
    """Redacting of that machine: the real one, message by message."""

    machine: SlowMachine
    inner: Redacting

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def redact_messages(
        self,
        wire: WireFormat,
        messages: Sequence[JsonObject],
        keys: PlaceholderKeys,
        *,
        at: JsonPath,
        readings: Sequence[Reading] | None = None,
        first: int = 0,
    ) -> list[RedactedMessage]:
        found: list[RedactedMessage] = []
        for index, message in enumerate(messages, first):
            found += self.inner.redact_messages(wire, [message], keys, at=at, first=index)
            self.machine.works()
        return found


@asynccontextmanager
async def app_of(machine: SlowMachine, database_url: str, folder: Path) -> AsyncIterator[tuple[App, SizedIndex]]:
    async with apps.foundations(database_url, folder, reconcile_interval_s=600) as on:
        lanes = EmbeddingLanes(SlowEmbedder(machine), machine.board, batch=1)
        index = SizedIndex(on.index.index)
        index.written = []
        slow = dataclasses.replace(on, board=machine.board, models=Models(lanes, None, {}), index=OpenedIndex(index))
        try:
            async with apps.app_on(slow, alone=True) as app:
                yield app, index
        finally:
            await lanes.close()


def long_window() -> list[dict[str, str]]:
    """Some forty of the longest segments."""
    said = "\n\n".join(
        f"Paragraph {n} of the report says that valve {n * 37} was opened at noon, and why. " * 45 for n in range(40)
    )
    return [{"role": "user", "content": said}, {"role": "assistant", "content": "It is read."}]


async def test_however_slow_each_step_of_storing_a_long_window_is_no_vital_stage_is_taken_for_stuck(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = SlowMachine()

    def analysed(text: str, context: str = "") -> SparseVector:
        machine.works()
        return analyse_document(text, context)

    monkeypatch.setattr(projection, "analyse_document", analysed)
    async with app_of(machine, database_url, tmp_path) as (app, index), apps.client(app, await apps.new_tenant(app)) as http:
        with machine.database_too():
            answer = await http.post("/v1/compactions", json=request("s", long_window()))

    assert answer.status_code == 201, answer.text
    assert machine.steps > 50
    assert machine.stuck == []
    assert len(index.written) > 2
    assert max(index.written) <= projection.SLICE_CHARS


async def test_a_write_that_does_not_come_back_is_stuck_all_the_same(database_url: str, tmp_path: Path) -> None:
    machine = SlowMachine()
    async with app_of(machine, database_url, tmp_path) as (app, index), apps.client(app, await apps.new_tenant(app)) as http:
        async with index.first_write_held() as write:
            asked = asyncio.create_task(http.post("/v1/compactions", json=request("s")))
            await write.reached()
            machine.now += LIMIT_S + 1
            stuck = machine.board.stuck(vital=True)
        await asked

    assert stuck == ("project",)


async def test_who_waits_for_a_core_to_project_on_is_not_stuck(database_url: str, tmp_path: Path) -> None:
    machine = SlowMachine()
    async with app_of(machine, database_url, tmp_path) as (app, _), apps.client(app, await apps.new_tenant(app)) as http:
        async with faults.held("before-upsert") as before:
            asked = asyncio.create_task(http.post("/v1/compactions", json=request("s")))
            await before.reached()
            taken = [app.parts.working.of(UUID(int=n)) for n in range(1, 65)]
            takers = [asyncio.create_task(one.__aenter__()) for one in taken]
            await asyncio.sleep(0.05)
            before.release()
            await asyncio.sleep(0.05)
            machine.now += LIMIT_S + 1
            stuck, waits = machine.board.stuck(vital=True), not asked.done()
            for taker, one in zip(takers, taken, strict=True):
                await taker
                await one.__aexit__(None, None, None)
        assert (await asked).status_code == 201

    assert (stuck, waits) == ((), True)


async def test_a_plan_whose_messages_take_long_to_read_is_not_stuck() -> None:
    machine = SlowMachine()
    planning = Planning(Planner(OneByOne(machine, apps.rules())), machine.board, at_once=1)  # type: ignore[arg-type]

    async with FairSlots(1).of(UUID(int=1)) as slot:
        await planning(slot, making.request([making.user(f"{n} {making.prose(60)}") for n in range(8)]))
    planning.close()

    assert machine.steps == 8
    assert machine.stuck == []
