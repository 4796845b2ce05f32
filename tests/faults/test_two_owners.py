"""Two owners of one piece of work: whatever becomes of the first and wherever, the second finishes it, once."""

from __future__ import annotations

import asyncio

import pytest

from coatcheck.ops import faults
from tests.faults.pair import SHORT_LEASE_S, Scene, stalled
from tests.faults.points import named
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODY = request("s", window(calls=3))


async def assert_one_handoff(at: Scene) -> None:
    """Both apps answer the same request with the same handoff, and there is one run of it."""
    answers = [await client.post("/v1/compactions", json=BODY) for client in (at.one, at.two)]
    assert [answer.status_code for answer in answers] == [200, 200], [answer.text for answer in answers]
    assert answers[0].json() == answers[1].json()
    back = await at.two.get(f"/v1/manifests/{answers[0].json()['manifest_id']}/window")
    assert back.json()["messages"] == BODY["window"]["messages"]
    assert len(await at.runs()) == 1
    await at.assert_agreement()


@pytest.mark.parametrize("point", named("compaction"))
async def test_after_an_error_at_any_point_the_second_app_finishes_what_the_first_began(at: Scene, point: str) -> None:
    faults.arm(f"{point}=raise@1")

    first = await at.brief.post("/v1/compactions", json=BODY)
    second = await at.two.post("/v1/compactions", json=BODY)

    assert first.status_code == 500
    assert second.status_code == (201 if point in ("before-persist", "inside-persist") else 200)
    await assert_one_handoff(at)


@pytest.mark.parametrize("point", named("compaction"))
async def test_after_a_cancellation_at_any_point_the_second_app_finishes_what_the_first_began(at: Scene, point: str) -> None:
    async with faults.held(point, first_alone=True) as hold:
        first = asyncio.create_task(at.brief.post("/v1/compactions", json=BODY))
        await hold.reached()
        await at.pair.brief.use_cases.compact.drain(0)
        answer = await first

    second = await at.two.post("/v1/compactions", json=BODY)

    assert (answer.status_code, answer.json()["type"].rsplit(":", 1)[-1]) == (503, "draining")
    assert answer.json()["retryable"]
    assert second.status_code in (200, 201)
    await assert_one_handoff(at)


@pytest.mark.parametrize("point", named("compaction", in_transaction=False))
async def test_a_first_owner_that_stands_still_is_overtaken_and_changes_nothing_when_it_wakes_up(at: Scene, point: str) -> None:
    async with stalled(point) as hold:
        first = asyncio.create_task(at.brief.post("/v1/compactions", json=BODY))
        await hold.reached()
        second = await at.two.post("/v1/compactions", json=BODY)
        before = await at.runs()
        hold.release()
        late = await first

    assert second.status_code == (201 if point == "before-persist" else 200)
    assert [run.status for run in before] == ["acknowledged"]
    assert late.status_code == 503 or late.json() == second.json()
    assert await at.runs() == before
    await assert_one_handoff(at)


async def test_a_write_that_arrives_after_the_next_owners_leaves_its_session_as_it_should_be(at: Scene) -> None:
    """The index takes the first owner's points last, with the acl of then; meanwhile the session became public."""
    session_id = (await at.two.post("/v1/compactions", json=request("s", window(mark="earlier")))).json()["session_id"]

    async with faults.held("before-renew"), at.pair.index.first_write_held() as hold:
        first = asyncio.create_task(at.brief.post("/v1/compactions", json=BODY))
        await hold.reached()
        second = await at.two.post("/v1/compactions", json=BODY)
        await at.two.patch(f"/v1/sessions/{session_id}", json={"visibility": "public"})
        await at.settled()
        hold.release()
        late = await first

    assert second.status_code == 200
    assert late.status_code == 503
    await at.assert_agreement()


@pytest.mark.parametrize("point", named("renewal"))
async def test_an_owner_that_fails_to_renew_its_lease_still_finishes_what_nobody_took_over(at: Scene, point: str) -> None:
    faults.arm(f"{point}=raise")
    async with faults.held("before-acknowledge", first_alone=True) as hold:
        first = asyncio.create_task(at.brief.post("/v1/compactions", json=BODY))
        await hold.reached()
        await asyncio.sleep(SHORT_LEASE_S)
        [run] = await at.runs()
        hold.release()
        answer = await first

    assert run.lease_until is not None
    assert run.lease_until < at.pair.brief.parts.clock()
    assert answer.status_code == 201
    await assert_one_handoff(at)


async def test_an_owner_whose_lease_has_ended_writes_nothing_any_more(at: Scene) -> None:
    async with stalled("before-upsert") as hold:
        first = asyncio.create_task(at.brief.post("/v1/compactions", json=BODY))
        await hold.reached()
        await at.two.post("/v1/compactions", json=BODY)
        upserts = at.pair.index.upserts
        hold.release()
        late = await first

    assert late.status_code == 503
    assert at.pair.index.upserts == upserts
    await assert_one_handoff(at)


async def test_a_first_owner_that_wakes_up_before_the_second_is_done_does_not_acknowledge_for_it(at: Scene) -> None:
    async with stalled("after-upsert") as early:
        first = asyncio.create_task(at.brief.post("/v1/compactions", json=BODY))
        await early.reached()
        async with faults.held("before-acknowledge", first_alone=True) as late:
            second = asyncio.create_task(at.two.post("/v1/compactions", json=BODY))
            await late.reached()
            early.release()
            answer = await first
            [run] = await at.runs()
            late.release()
            made = await second

    assert (answer.status_code, answer.json()["type"].rsplit(":", 1)[-1]) == (503, "projection-pending")
    assert (run.status, run.lease_owner, run.fence) == ("persisted", "second", 2)
    assert made.status_code == 200
    await assert_one_handoff(at)


async def test_an_owner_that_lives_renews_its_lease_until_it_is_done(at: Scene) -> None:
    async with faults.held("before-acknowledge", first_alone=True) as hold:
        first = asyncio.create_task(at.brief.post("/v1/compactions", json=BODY))
        await hold.reached()
        [early] = await at.runs()
        await asyncio.sleep(SHORT_LEASE_S)
        [late] = await at.runs()
        hold.release()
        answer = await first

    assert (early.lease_owner, late.lease_owner, late.fence) == ("brief", "brief", early.fence)
    assert early.lease_until is not None
    assert late.lease_until is not None
    assert early.lease_until < late.lease_until
    assert answer.status_code == 201
    await assert_one_handoff(at)


@pytest.mark.parametrize("fault", ["raise", "cancel", "stall"])
async def test_what_one_reconciler_claimed_and_left_another_does(at: Scene, fault: str) -> None:
    at.pair.index.refuses_writes = True
    assert (await at.brief.post("/v1/compactions", json=BODY)).status_code == 503
    at.pair.index.calm()
    first = at.pair.brief.use_cases.reconciler
    async with faults.held("after-claim", first_alone=True) as hold:
        if fault == "raise":
            faults.arm("after-claim=raise@1")
            hold.release()
        walking = asyncio.create_task(first.drain_tenant(at.caller.tenant_id))
        await hold.reached()
        if fault == "cancel":
            walking.cancel()
        if fault == "raise":
            assert (await walking).failed == 1
        else:
            await asyncio.sleep(SHORT_LEASE_S)
        await at.settled()
        before = await at.runs()
        hold.release()
        await asyncio.wait({walking})

    assert [run.status for run in before] == ["acknowledged"]
    assert await at.runs() == before
    await assert_one_handoff(at)
