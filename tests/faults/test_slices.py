"""A window of several slices that is interrupted between two of them: what was recorded stays, and the rest alone is embedded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from coatcheck.domain.identifiers import uuid7
from coatcheck.domain.outbox import OutboxKind
from coatcheck.memory import projection
from coatcheck.ops import faults
from coatcheck.store import outbox
from coatcheck.store.database import WorkerTransaction
from tests.faults.embedded import note_embedded
from tests.faults.pair import SHORT_LEASE_S, Scene
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLICES = 6
MESSAGES: list[dict[str, Any]] = [
    {"role": ("user", "assistant")[n % 2], "content": f"Report {n}: valve {n * 37} was opened at noon, and nobody knows why. " * 4}
    for n in range(SLICES)
]
BODY = request("s", MESSAGES)


@pytest.fixture(autouse=True)
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One message fills a slice. The texts that the embedder was given, in their order."""
    monkeypatch.setattr(projection, "SLICE_CHARS", 300)
    return note_embedded(monkeypatch)


@asynccontextmanager
async def standing_in_slice(number: int, point: str = "before-upsert") -> AsyncIterator[faults.Hold]:
    """Whoever projects stands still in this slice, before or after its points are written, until the block's end; others pass."""
    for _ in range(number - 1):
        async with faults.held(point) as hold:
            await hold.reached()
    async with faults.held(point, first_alone=True) as hold:
        await hold.reached()
        yield hold


@pytest.mark.parametrize(("point", "kept"), [("before-upsert", 3), ("after-upsert", 3), ("before-upsert", 0), ("after-upsert", 5)])
async def test_after_a_crash_in_a_slice_those_before_it_are_not_embedded_again(
    at: Scene, embedded: list[str], point: str, kept: int
) -> None:
    faults.arm(f"{point}=raise@{kept + 1}")
    crashed = await at.one.post("/v1/compactions", json=BODY)
    [run] = await at.runs()
    first, rows = list(embedded), await at.projected()
    embedded.clear()

    again = await at.two.post("/v1/compactions", json=BODY)

    assert (crashed.status_code, run.status, rows) == (500, "persisted", kept)
    assert again.status_code == 200
    assert len(first) == kept + 1
    assert len(embedded) == SLICES - kept
    assert not set(first[:kept]) & set(embedded)
    await at.assert_agreement()


async def test_a_slice_that_the_index_refuses_keeps_those_before_it_and_only_the_rest_is_tried_again(
    at: Scene, embedded: list[str]
) -> None:
    other = (await at.one.post("/v1/compactions", json=request("other", MESSAGES))).json()
    entries = (await at.one.get(f"/v1/manifests/{other['manifest_id']}/entries")).json()["entries"]
    at.pair.index.poison = frozenset({entries[3]["sha256"]})
    embedded.clear()
    refused = await at.one.post("/v1/compactions", json=BODY)
    assert len(embedded) == 4

    at.pair.index.calm()
    await at.settled()

    assert (refused.status_code, refused.json()["type"].rsplit(":", 1)[-1]) == (503, "projection-pending")
    assert len(embedded) == 4 + SLICES - 3
    assert (await at.one.post("/v1/compactions", json=BODY)).status_code == 200
    await at.assert_agreement()


async def test_an_acknowledged_window_that_is_projected_anew_goes_on_too_and_is_never_put_aside_while_it_gets_on(
    at: Scene, embedded: list[str]
) -> None:
    """As for another generation; by a process that dies in each slice, more often than any work may fail."""
    await at.one.post("/v1/compactions", json=BODY)
    [run] = await at.runs()

    async def owed_anew(tx: WorkerTransaction) -> None:
        await tx.connection.execute(sa.text("UPDATE projections SET content_version = 'earlier'"))
        await outbox.enqueue(tx, uuid7(), OutboxKind.UPSERT, run.session_id, manifest_id=run.manifest_id)

    await at.pair.second.parts.database.work(at.scope, owed_anew)
    embedded.clear()
    attempts = []
    for _ in range(SLICES - 1):
        faults.arm("before-upsert=raise@2")
        await at.reconcile_now("upsert")
        attempts += [number for _, number, _ in await at.owed()]
    faults.disarm()
    await at.settled()

    assert attempts == [1] * (SLICES - 1)
    assert len(embedded) == SLICES + SLICES - 1
    await at.assert_agreement()


async def test_who_takes_over_after_a_lost_lease_goes_on_behind_the_last_slice_and_the_first_owner_writes_nothing_more(
    at: Scene, embedded: list[str]
) -> None:
    async with faults.held("before-renew"):
        first = asyncio.create_task(at.brief.post("/v1/compactions", json=BODY))
        async with standing_in_slice(3) as hold:
            await asyncio.sleep(SHORT_LEASE_S)
            embedded.clear()
            second = await at.two.post("/v1/compactions", json=BODY)
            rest, upserts = len(embedded), at.pair.index.upserts
            hold.release()
            late = await first

    assert (second.status_code, late.status_code) == (200, 503)
    assert rest == SLICES - 2
    assert at.pair.index.upserts == upserts
    assert len(embedded) == rest
    await at.assert_agreement()


@pytest.mark.parametrize("what", ["manifest", "session"])
@pytest.mark.parametrize("point", ["before-upsert", "after-upsert"])
async def test_of_what_is_erased_in_a_slice_nothing_is_left_and_nothing_comes_back(at: Scene, what: str, point: str) -> None:
    compacting = asyncio.create_task(at.one.post("/v1/compactions", json=BODY))
    async with standing_in_slice(3, point):
        erased = await at.two.delete(await path_of(at, what))
    late = await compacting
    points_before_any_sweep = await at.points()
    again = await at.two.post("/v1/compactions", json=BODY)

    assert (erased.status_code, late.status_code, again.status_code) == (204, 410, 410)
    assert points_before_any_sweep == 0
    await assert_nothing_left(at)


@pytest.mark.parametrize("what", ["manifest", "session"])
async def test_of_what_is_erased_between_two_attempts_nothing_is_left_either(at: Scene, what: str) -> None:
    faults.arm("after-upsert=raise@3")
    assert (await at.one.post("/v1/compactions", json=BODY)).status_code == 500

    erased = await at.two.delete(await path_of(at, what))
    again = await at.two.post("/v1/compactions", json=BODY)

    assert (erased.status_code, again.status_code) == (204, 410)
    await assert_nothing_left(at)


async def path_of(at: Scene, what: str) -> str:
    [run] = await at.runs()
    return f"/v1/manifests/{run.manifest_id}" if what == "manifest" else f"/v1/sessions/{run.session_id}"


async def assert_nothing_left(at: Scene) -> None:
    await at.assert_agreement()
    assert (await at.texts(), await at.points(), await at.projected()) == (0, 0, 0)


async def test_work_that_gets_on_at_its_last_attempt_is_not_counted_as_put_aside(at: Scene) -> None:
    await at.one.post("/v1/compactions", json=BODY)
    [run] = await at.runs()
    second, item_id = at.pair.second, uuid7()

    async def owed_anew(tx: WorkerTransaction) -> None:
        await tx.connection.execute(sa.text("UPDATE projections SET content_version = 'earlier'"))
        item = await outbox.enqueue(tx, item_id, OutboxKind.UPSERT, run.session_id, manifest_id=run.manifest_id)
        await tx.connection.execute(
            sa.text("UPDATE outbox SET attempts = :before WHERE item_id = :item"),
            {"before": second.parts.settings.outbox_max_attempts - 1, "item": item.item_id},
        )

    await second.parts.database.work(at.scope, owed_anew)
    faults.arm("before-upsert=raise@2")

    done = await second.use_cases.reconciler.drain_tenant(at.caller.tenant_id)

    assert (done.failed, done.quarantined) == (1, 0)
    assert [(kind, error) for kind, _, error in await at.owed()] == [("upsert", None)]
    await at.assert_agreement()


@pytest.mark.parametrize("followed", [True, False], ids=["which the index followed", "which the index is to follow"])
@pytest.mark.parametrize("point", ["before-upsert", "after-upsert"])
async def test_readers_that_change_in_a_slice_are_the_readers_of_every_slice(at: Scene, point: str, followed: bool) -> None:
    """And the index follows once for all the slices that were made for those of before."""
    compacting = asyncio.create_task(at.one.post("/v1/compactions", json=BODY))
    async with standing_in_slice(3, point):
        [run] = await at.runs()
        changed = await at.two.patch(f"/v1/sessions/{run.session_id}", json={"visibility": "public"})
        if followed:
            await at.reconcile_now("acl")
    answer = await compacting

    assert (changed.status_code, answer.status_code) == (200, 201)
    assert [kind for kind, _, _ in await at.owed()] == ["acl"]
    await at.assert_agreement()
    [readers] = {one.acl for one in await at.stored_points()}
    assert "public" in readers


async def test_a_segment_whose_context_is_erased_while_its_points_are_written_is_projected_from_the_next_one(at: Scene) -> None:
    """The first window holds the text too, and died before anything of it was recorded: no row tells whose context it was."""
    faults.arm("before-upsert=raise@1")
    assert (await at.one.post("/v1/compactions", json=request("s", [*window(calls=1), MESSAGES[0]]))).status_code == 500
    [first] = await at.runs()
    async with faults.held("after-upsert", first_alone=True) as written:
        compacting = asyncio.create_task(at.one.post("/v1/compactions", json=BODY))
        await written.reached()
        erased = await at.two.delete(f"/v1/manifests/{first.manifest_id}")
        written.release()
        answer = await compacting

    assert (erased.status_code, answer.status_code) == (204, 201)
    await at.assert_agreement()
    assert await at.contexts() == {UUID(answer.json()["manifest_id"])}


async def test_work_that_is_cancelled_in_a_slice_is_taken_up_behind_the_last_one(at: Scene, embedded: list[str]) -> None:
    """By a process that goes down: the request's own end does not end the work."""
    asking = asyncio.create_task(at.one.post("/v1/compactions", json=BODY))
    async with standing_in_slice(3):
        asking.cancel()
        await asyncio.wait({asking})
        embedded.clear()
        await at.pair.first.use_cases.compact.drain(0)
    [run] = await at.runs()
    rows = await at.projected()

    await at.settled()

    assert (run.status, run.lease_owner, rows) == ("persisted", None, 2)
    assert len(embedded) == SLICES - 2
    assert (await at.one.post("/v1/compactions", json=BODY)).status_code == 200
    await at.assert_agreement()


async def test_what_is_taken_out_in_a_slice_before_it_is_recorded_is_written_again(at: Scene) -> None:
    """The window that holds it stands, so that it is owed; a row that told of it would have it taken for written."""
    compacting = asyncio.create_task(at.one.post("/v1/compactions", json=BODY))
    async with standing_in_slice(3, "after-upsert"):
        [run] = await at.runs()
        taken = [(point.exact_sha256, point.point_id) for point in await at.stored_points()]
        await at.pair.second.use_cases.projector.remove_points(at.scope, run.session_id, taken)
    answer = await compacting

    assert (answer.status_code, len(taken)) == (201, 3)
    await at.assert_agreement()
    assert await at.points() == SLICES
