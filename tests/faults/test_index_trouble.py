"""An index that refuses, is slow, writes half or is gone: 503 projection-pending, nothing lost, and it mends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
import pytest_asyncio

from coatcheck.ops import faults
from coatcheck.store import outbox
from tests.faults.pair import Pair, Scene, scene, two_apps
from tests.postgres import Postgres
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAX_ATTEMPTS = 3
BODY = request("s", window(calls=3))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(postgres: Postgres, database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    """Apps whose reconcilers work by themselves, and soon put aside what fails."""
    quick = {"reconcile_interval_s": 0.05, "outbox_max_attempts": MAX_ATTEMPTS}
    async with two_apps(postgres, database_url, tmp_path_factory.mktemp("troubled"), **quick) as both:
        yield both


@pytest_asyncio.fixture(loop_scope="module")
async def at(pair: Pair) -> AsyncIterator[Scene]:
    async with scene(pair) as one:
        yield one


async def until(at: Scene, so: Callable[[list[tuple[str, int, str | None]]], bool]) -> list[tuple[str, int, str | None]]:
    """The outbox, once it is so."""
    for _ in range(1_000):
        owed = await at.owed()
        if so(owed):
            return owed
        await asyncio.sleep(0.02)
    raise AssertionError(f"it did not become so: {owed}")


def problem(answer: httpx.Response) -> tuple[int, str, bool]:
    body = answer.json()
    return answer.status_code, body["type"].rsplit(":", 1)[-1], body["retryable"] and "Retry-After" in answer.headers


PENDING = (503, "projection-pending", True)
SHORT = {"Coatcheck-Deadline": "2"}
"""And long enough for the rows, also on a machine that others use."""


@pytest.mark.parametrize("trouble", ["refuses_writes", "half_written", "gone"])
async def test_a_window_that_cannot_be_projected_is_kept_and_the_retry_gives_its_handoff(at: Scene, trouble: str) -> None:
    setattr(at.pair.index, trouble, True)

    answer = await at.one.post("/v1/compactions", json=BODY)
    [run] = await at.runs()
    kept = (await at.two.get(f"/v1/manifests/{run.manifest_id}/window")).json()
    at.pair.index.calm()
    retried = await at.two.post("/v1/compactions", json=BODY)

    assert problem(answer) == PENDING
    assert run.status == "persisted"
    assert kept["messages"] == BODY["window"]["messages"]
    assert (retried.status_code, retried.json()["manifest_id"]) == (200, str(run.manifest_id))
    stored = (await at.one.get(f"/v1/manifests/{run.manifest_id}")).json()["handoff"]
    assert stored["text"] == retried.json()["handoff"]["text"]
    await at.assert_agreement()


@pytest.mark.parametrize("trouble", ["refuses_writes", "half_written", "gone"])
async def test_without_a_retry_the_reconciler_finishes_it(at: Scene, trouble: str) -> None:
    setattr(at.pair.index, trouble, True)
    assert problem(await at.one.post("/v1/compactions", json=BODY)) == PENDING

    at.pair.index.calm()
    await until(at, lambda owed: not owed)

    assert [run.status for run in await at.runs()] == ["acknowledged"]
    assert (await at.one.post("/v1/compactions", json=BODY)).status_code == 200
    await at.assert_agreement()


async def test_a_projection_that_outlives_the_deadline_goes_on_and_the_same_request_picks_it_up(at: Scene) -> None:
    async with at.pair.index.first_write_held():
        answer = await at.one.post("/v1/compactions", json=BODY, headers=SHORT)
        [run] = await at.runs()
        picking_up = asyncio.create_task(at.one.post("/v1/compactions", json=BODY))
    picked_up = await picking_up

    assert problem(answer) == PENDING
    assert (run.status, run.lease_owner) == ("persisted", "first")
    assert (picked_up.status_code, picked_up.json()["manifest_id"]) == (200, str(run.manifest_id))
    assert [(after.status, after.fence) for after in await at.runs()] == [("acknowledged", run.fence)]
    await at.assert_agreement()


async def test_a_projection_that_outlives_the_deadline_is_finished_when_nobody_asks_again(at: Scene) -> None:
    async with at.pair.index.first_write_held():
        assert problem(await at.one.post("/v1/compactions", json=BODY, headers=SHORT)) == PENDING

    await until(at, lambda owed: not owed)

    assert [run.status for run in await at.runs()] == ["acknowledged"]
    await at.assert_agreement()


async def test_while_the_index_is_gone_what_is_kept_is_read_and_nothing_counts_as_an_attempt(at: Scene) -> None:
    one = (await at.one.post("/v1/compactions", json=request("s", window(mark="before")))).json()
    at.pair.index.gone = True
    assert problem(await at.one.post("/v1/compactions", json=BODY)) == PENDING

    await asyncio.sleep(0.5)  # ten walks of each of three reconcilers
    recalled = await at.two.post("/v1/recall", json={"query": "health"})
    read = await at.two.get(f"/v1/manifests/{one['manifest_id']}/entries?text=true")
    owed = await at.owed()
    at.pair.index.calm()
    await until(at, lambda owed: not owed)

    assert problem(recalled) == (503, "index-unavailable", True)
    assert read.status_code == 200
    assert [(kind, error) for kind, _, error in owed] == [("upsert", None)]
    assert owed[0][1] <= 1
    await at.assert_agreement()


async def test_a_segment_that_always_fails_is_put_aside_with_its_error_and_the_others_go_on(at: Scene) -> None:
    entries = (await at.one.post("/v1/compactions", json=request("other", BODY["window"]["messages"]))).json()
    page = (await at.one.get(f"/v1/manifests/{entries['manifest_id']}/entries")).json()["entries"]
    at.pair.index.poison = frozenset({page[2]["sha256"]})
    assert problem(await at.one.post("/v1/compactions", json=BODY)) == PENDING

    owed = await until(at, lambda owed: any(error for _, _, error in owed))
    others = await at.one.post("/v1/compactions", json=request("s", window(mark="healthy")))
    readiness = await at.pair.first.use_cases.services.readiness()

    assert owed == [("upsert", MAX_ATTEMPTS, "index-unavailable")]
    assert others.status_code == 201
    assert (readiness.ready, readiness.quarantined) == (True, 1)
    at.pair.index.calm()
    job = (await at.two.post("/v1/admin/reconcile")).json()
    while job["status"] == "running":
        await asyncio.sleep(0.02)
        job = (await at.two.get(f"/v1/admin/reconcile/{job['job_id']}")).json()
    assert (job["status"], job["progress"]["quarantined"]) == ("done", 0)
    await at.assert_agreement()


async def test_an_error_that_nobody_foresaw_is_put_aside_too_and_does_not_end_the_reconciler(at: Scene) -> None:
    faults.arm("before-upsert=raise")
    assert (await at.one.post("/v1/compactions", json=BODY)).status_code == 500

    owed = await until(at, lambda owed: any(error for _, _, error in owed))
    faults.disarm()

    assert owed == [("upsert", MAX_ATTEMPTS, "InjectedFault")]
    at.pair.index.half_written = True
    assert problem(await at.one.post("/v1/compactions", json=request("s", window(mark="later")))) == PENDING
    at.pair.index.calm()
    await until(at, lambda owed: len(owed) == 1)
    assert (await at.one.post("/v1/compactions", json=BODY)).status_code == 200
    await at.assert_agreement()


async def test_work_whose_process_dies_each_time_is_put_aside(at: Scene) -> None:
    at.pair.index.gone = True
    assert problem(await at.one.post("/v1/compactions", json=BODY)) == PENDING
    parts = at.pair.second.parts
    died = 0
    for _ in range(1_000):  # the living have it in hand now and then, and what they let go of is due a little later
        now = parts.clock()
        died += len(await parts.database.work(at.scope, lambda tx, now=now: outbox.claim(tx, "dead", 1, now, now)))  # type: ignore[misc]
        if died > MAX_ATTEMPTS:
            break
        await asyncio.sleep(0.01)
    at.pair.index.calm()

    owed = await until(at, lambda owed: any(error for _, _, error in owed))

    assert [(kind, error) for kind, _, error in owed] == [("upsert", "never-ended")]
    assert (await at.one.post("/v1/compactions", json=BODY)).status_code == 200
    await at.assert_agreement()


async def test_an_erasure_is_never_put_aside_however_long_the_index_refuses(at: Scene) -> None:
    made = (await at.one.post("/v1/compactions", json=BODY)).json()
    at.pair.index.refuses_writes = True

    erased = await at.one.delete(f"/v1/sessions/{made['session_id']}")
    owed = await until(at, lambda owed: owed[0][1] > MAX_ATTEMPTS)

    assert problem(erased) == (503, "erase-pending", True)
    assert [(kind, error) for kind, _, error in owed] == [("erase", None)]
    assert (await at.two.get(f"/v1/manifests/{made['manifest_id']}")).status_code == 410
    at.pair.index.calm()
    await until(at, lambda owed: not owed)
    assert (await at.texts(), await at.points()) == (0, 0)
    await at.assert_agreement()
