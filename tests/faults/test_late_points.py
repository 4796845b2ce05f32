"""A window is erased or redacted while the reconciler writes its points again, late or not to the end: none of them stays."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import pytest
import sqlalchemy as sa

from coatcheck.compaction.planner import Planner
from coatcheck.compaction.redaction import Redactor
from coatcheck.domain.identifiers import uuid7
from coatcheck.domain.outbox import OutboxKind
from coatcheck.memory.planning import Planning
from coatcheck.memory.recording import owe
from coatcheck.memory.rescan import Rescan
from coatcheck.ops import faults
from coatcheck.settings import cache_dir
from coatcheck.store import outbox
from coatcheck.store.database import WorkerTransaction
from tests import own_rules
from tests.faults.erased import Handed
from tests.faults.pair import Scene
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")

BADGE = "badge-204816"
Change = Callable[[Scene, Handed, Path], Awaitable[None]]


async def erased(at: Scene, one: Handed, folder: Path) -> None:
    assert (await at.two.delete(one.manifest)).status_code == 204


async def redacted(at: Scene, one: Handed, folder: Path) -> None:
    """Under rules that came after the window."""
    redactor = Redactor(cache_dir() / "rules", own_rules.write(folder))
    planning = Planning(Planner(redactor), at.pair.second.parts.progress, at_once=1)
    parts = dataclasses.replace(at.pair.second.parts, redactor=redactor, planning=planning)
    done = await Rescan(parts, at.pair.second.use_cases.projector).rescan(at.scope)
    planning.close()
    assert done["changed"] == 1


Owe = Callable[[Scene, Handed, list[str]], Awaitable[None]]


async def owed_anew(at: Scene, one: Handed, segments: list[str]) -> None:
    """As after a repair: no row tells of the points that stand."""

    async def work(tx: WorkerTransaction) -> None:
        await owe(tx, uuid7, UUID(one.answer["session_id"]), segments)

    await at.pair.second.parts.database.work(at.scope, work)


async def changed(at: Scene, one: Handed, segments: list[str]) -> None:
    """As when the context of a segment became another one: its row tells of the points that stand."""
    session_id = UUID(one.answer["session_id"])

    async def work(tx: WorkerTransaction) -> None:
        await tx.connection.execute(sa.text("UPDATE projections SET content_version = 'earlier'"))
        for sha in segments:
            await outbox.enqueue(tx, uuid7(), OutboxKind.UPSERT, session_id, segment_sha256=sha)

    await at.pair.second.parts.database.work(at.scope, work)


async def changed_all(at: Scene, one: Handed, segments: list[str]) -> None:
    """As for another generation: the window is named, and not its segments."""
    session_id, manifest_id = UUID(one.answer["session_id"]), UUID(one.answer["manifest_id"])

    async def work(tx: WorkerTransaction) -> None:
        await tx.connection.execute(sa.text("UPDATE projections SET content_version = 'earlier'"))
        await outbox.enqueue(tx, uuid7(), OutboxKind.UPSERT, session_id, manifest_id=manifest_id)

    await at.pair.second.parts.database.work(at.scope, work)


CHANGES = pytest.mark.parametrize("change", [erased, redacted])
OWED = pytest.mark.parametrize("owed", [owed_anew, changed, changed_all])


async def handed(at: Scene) -> tuple[Handed, list[str]]:
    """A window with a badge's number in it, and the segments that hold it."""
    body = request("s", [{"role": "user", "content": f"Decision: {BADGE} never opens the gate."}, *window(calls=2, filler=6)])
    answer = await at.one.post("/v1/compactions", json=body)
    assert answer.status_code == 201, answer.text
    one = Handed("alpha", body, answer.json())
    entries = (await at.one.get(f"{one.manifest}/entries?text=true")).json()["entries"]
    return one, [entry["sha256"] for entry in entries if BADGE in entry["text"]]


async def assert_gone(at: Scene, segments: list[str]) -> None:
    await at.assert_agreement()
    assert not {point.exact_sha256 for point in await at.stored_points()} & set(segments)


@CHANGES
@OWED
@pytest.mark.parametrize("point", ["before-upsert", "after-upsert"])
async def test_by_an_owner_whose_lease_has_ended(at: Scene, tmp_path: Path, change: Change, owed: Owe, point: str) -> None:
    one, segments = await handed(at)
    await owed(at, one, segments)
    async with faults.held(point, first_alone=True) as hold:
        late = asyncio.create_task(at.pair.first.use_cases.reconciler.drain_tenant(at.caller.tenant_id))
        await hold.reached()
        await at.end_leases()
        await change(at, one, tmp_path)
        hold.release()
        await late

    await assert_gone(at, segments)


@CHANGES
@OWED
async def test_by_an_owner_that_died_before_it_recorded_them(at: Scene, tmp_path: Path, change: Change, owed: Owe) -> None:
    one, segments = await handed(at)
    await owed(at, one, segments)
    async with at.pair.index.first_write_held() as hold:
        dying = asyncio.create_task(at.pair.first.use_cases.reconciler.batch(at.scope))
        await hold.reached()
        await at.end_leases()
        await change(at, one, tmp_path)
        # Its points arrive, and nobody hears of it.
        async with faults.held("after-upsert") as dead:
            hold.release()
            await dead.reached()
            dying.cancel()
            await asyncio.wait({dying})

    await assert_gone(at, segments)


@CHANGES
async def test_that_are_owed_and_of_which_no_row_tells(at: Scene, tmp_path: Path, change: Change) -> None:
    one, segments = await handed(at)
    await owed_anew(at, one, segments)
    assert {point.exact_sha256 for point in await at.stored_points()} >= set(segments)

    await change(at, one, tmp_path)

    await assert_gone(at, segments)
