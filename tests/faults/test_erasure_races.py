"""DELETE at the same time as compactions, recalls, sweeps, repairs and other DELETEs."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from coatcheck.ops import faults
from tests.faults.erased import Handed, assert_unreachable, assert_whole, handed, marked, own_segments
from tests.faults.pair import Scene
from tests.faults.points import named
from tests.windows import request, window

pytestmark = pytest.mark.asyncio(loop_scope="module")

A_MOMENT_S = 0.15
"""Long enough for who is not kept waiting to be done."""


def as_handed(mark: str, answer: httpx.Response) -> Handed:
    assert answer.status_code in (200, 201), answer.text
    return Handed(mark, marked(mark), answer.json())


@pytest.mark.parametrize("point", named("compaction"))
async def test_a_compaction_that_shares_text_with_an_erased_manifest_is_whole_afterwards(at: Scene, point: str) -> None:
    one = await handed(at.one, "alpha")
    segments = await own_segments(at.one, one)
    async with faults.held(point, first_alone=True) as hold:
        compacting = asyncio.create_task(at.one.post("/v1/compactions", json=marked("beta")))
        await hold.reached()
        erasing = asyncio.create_task(at.two.delete(one.manifest))
        await asyncio.wait({erasing}, timeout=A_MOMENT_S)
        hold.release()
        other, erased = as_handed("beta", await compacting), await erasing

    assert erased.status_code == 204
    await at.assert_agreement()
    await assert_unreachable(at, one, segments, session_too=False)
    await assert_whole(at, other)


@pytest.mark.parametrize("point", named("erasure", in_transaction=False))
async def test_a_compaction_in_the_middle_of_an_erasure_that_shares_its_text_is_whole_afterwards(at: Scene, point: str) -> None:
    one = await handed(at.one, "alpha")
    segments = await own_segments(at.one, one)
    async with faults.held(point) as erasure, faults.held("before-acknowledge", first_alone=True) as written:
        erasing = asyncio.create_task(at.two.delete(one.manifest))
        await erasure.reached()
        compacting = asyncio.create_task(at.one.post("/v1/compactions", json=marked("beta")))
        await written.reached()
        erasure.release()
        erased = await erasing
        written.release()
        other = as_handed("beta", await compacting)

    assert erased.status_code == 204
    await at.assert_agreement()
    await assert_unreachable(at, one, segments, session_too=False)
    await assert_whole(at, other)


@pytest.mark.parametrize("point", named("compaction"))
async def test_a_session_that_goes_takes_along_what_was_being_handed_in(at: Scene, point: str) -> None:
    one = await handed(at.one, "alpha")
    segments = await own_segments(at.one, one)
    async with faults.held(point, first_alone=True) as hold:
        compacting = asyncio.create_task(at.one.post("/v1/compactions", json=marked("beta")))
        await hold.reached()
        erasing = asyncio.create_task(at.two.delete(one.session))
        await asyncio.wait({erasing}, timeout=A_MOMENT_S)
        hold.release()
        answer, erased = await compacting, await erasing

    assert erased.status_code == 204
    await at.assert_agreement()
    await assert_unreachable(at, one, segments, session_too=True)
    again = await at.two.post("/v1/compactions", json=marked("beta"))
    if point == "before-persist":  # it came after the erasure, and began the session anew
        assert (answer.status_code, again.status_code) == (201, 200)
        assert answer.json()["session_id"] != one.answer["session_id"]
        await assert_whole(at, as_handed("beta", answer))
    else:
        assert answer.status_code == (201 if point in ("inside-acknowledge", "after-acknowledge") else 410)
        assert again.status_code == 410
        assert (await at.texts(), await at.points()) == (0, 0)


async def test_a_handoff_that_was_being_made_does_not_quote_what_was_erased_meanwhile(at: Scene) -> None:
    one = await handed(at.one, "alpha")
    body = request("s", [one.answer["handoff"]["message"], *window(mark="beta")])
    async with faults.held("before-persist", first_alone=True) as hold:
        compacting = asyncio.create_task(at.one.post("/v1/compactions", json=body))
        await hold.reached()
        await at.two.delete(one.manifest)
        hold.release()
        answer = await compacting

    assert answer.status_code == 201
    assert "beta" in answer.json()["handoff"]["text"]
    assert "alpha" not in answer.json()["handoff"]["text"]
    stored = await at.two.get(f"/v1/manifests/{answer.json()['manifest_id']}")
    assert "alpha" not in stored.text
    await at.assert_agreement()


async def test_points_that_no_row_records_are_swept_and_those_of_a_run_under_way_are_not(at: Scene) -> None:
    at.pair.index.half_written = True
    assert (await at.one.post("/v1/compactions", json=marked("alpha"))).status_code == 503
    at.pair.index.calm()
    [half] = await at.runs()
    async with faults.held("before-acknowledge", first_alone=True) as hold:
        compacting = asyncio.create_task(at.one.post("/v1/compactions", json=marked("beta")))
        await hold.reached()
        assert (await at.two.delete(f"/v1/manifests/{half.manifest_id}")).status_code == 204
        before = [kind for kind, _, _ in await at.owed()]
        await at.reconcile_now(kind="sweep")
        after = [kind for kind, _, _ in await at.owed()]
        hold.release()
        other = as_handed("beta", await compacting)

    assert (before.count("sweep"), after.count("sweep")) == (1, 0)
    await at.assert_agreement()
    await assert_whole(at, other)


async def test_a_repair_leaves_the_points_of_a_run_under_way(at: Scene) -> None:
    async with faults.held("before-acknowledge", first_alone=True) as hold:
        compacting = asyncio.create_task(at.one.post("/v1/compactions", json=marked("beta")))
        await hold.reached()
        job = (await at.two.post("/v1/admin/repair", json={"index": True})).json()
        while job["status"] == "running":
            await asyncio.sleep(0.02)
            job = (await at.two.get(f"/v1/admin/repair/{job['job_id']}")).json()
        hold.release()
        other = as_handed("beta", await compacting)

    assert job["status"] == "done", job
    await at.assert_agreement()
    await assert_whole(at, other)


async def test_points_that_somebody_took_out_of_a_run_under_way_are_written_again(at: Scene) -> None:
    """As by a sweep or a repair that looked before the run stood, and deletes after its points came."""
    async with faults.held("before-acknowledge", first_alone=True) as hold:
        compacting = asyncio.create_task(at.one.post("/v1/compactions", json=marked("beta")))
        await hold.reached()
        points = await at.stored_points()
        doomed = [(point.exact_sha256, point.point_id) for point in points]
        await at.pair.second.use_cases.projector.remove_points(at.scope, points[0].session_id, doomed)
        hold.release()
        other = as_handed("beta", await compacting)

    await at.assert_agreement()
    await assert_whole(at, other)


async def test_a_recall_after_the_mark_shows_nothing_though_every_point_is_still_there(at: Scene) -> None:
    one = await handed(at.one, "alpha")
    segments = await own_segments(at.one, one)
    async with faults.held("after-erase-mark") as hold:
        erasing = asyncio.create_task(at.one.delete(one.session))
        await hold.reached()
        points = await at.points()
        await assert_unreachable(at, one, segments, session_too=True)
        hold.release()
        await erasing

    assert points >= len(segments)
    await at.assert_agreement()


async def test_recalls_while_windows_are_erased_never_show_what_is_gone(at: Scene) -> None:
    marks = [f"mark{number}" for number in range(4)]
    all_handed = [await handed(at.one, mark) for mark in marks]
    gone: set[str] = set()
    asked = 0

    async def ask() -> None:
        nonlocal asked
        while len(gone) < len(marks):
            gone_before = set(gone)
            found = (await at.two.post("/v1/recall", json={"query": "health failed with 500", "top_k": 50})).json()
            assert not [mark for mark in gone_before if f"/{mark}/" in found["rendered"]]
            asked += 1

    asking = asyncio.create_task(ask())
    for one in all_handed:
        await asyncio.sleep(0.05)
        assert (await at.one.delete(one.manifest)).status_code == 204
        gone.add(one.mark)
    await asking

    assert asked >= len(marks)
    await at.assert_agreement()


async def test_of_two_erasures_of_one_manifest_one_does_it(at: Scene) -> None:
    one = await handed(at.one, "alpha")

    answers = await asyncio.gather(at.one.delete(one.manifest), at.two.delete(one.manifest))

    assert sorted(answer.status_code for answer in answers) == [204, 410]
    await at.assert_agreement()


async def test_two_manifests_erased_at_once_take_what_only_they_held(at: Scene) -> None:
    one, other, rest = [await handed(at.one, mark) for mark in ("alpha", "beta", "gamma")]
    segments = [*await own_segments(at.one, one), *await own_segments(at.one, other)]
    async with faults.held("after-erase-mark") as hold:
        erasing = [asyncio.create_task(at.one.delete(one.manifest)), asyncio.create_task(at.two.delete(other.manifest))]
        await hold.reached(arrivals=2)
        hold.release()
        answers = await asyncio.gather(*erasing)

    assert [answer.status_code for answer in answers] == [204, 204]
    await at.assert_agreement()
    await assert_unreachable(at, one, segments, session_too=False)
    await assert_whole(at, rest)


async def test_two_windows_at_once_that_hold_one_text_in_two_roles_leave_it_findable_by_both(at: Scene) -> None:
    """Each projects the shared text with what it saw of the other: whose points came last is not for the rows to guess."""
    as_tool: list[dict[str, Any]] = [
        SHARED_CALL,
        {"role": "tool", "tool_call_id": "call_9", "content": SHARED_TEXT},
        *window(mark="beta"),
    ]
    bodies = [request("s", [{"role": "user", "content": SHARED_TEXT}, *window(mark="alpha")]), request("s", as_tool)]
    await handed(at.one, "earlier")
    async with faults.held("before-upsert", first_alone=True) as early, faults.held("before-acknowledge") as late:
        first = asyncio.create_task(at.one.post("/v1/compactions", json=bodies[0]))
        await early.reached()
        second = asyncio.create_task(at.two.post("/v1/compactions", json=bodies[1]))
        await late.reached()
        early.release()
        await late.reached(arrivals=2)
        late.release()
        answers = await asyncio.gather(first, second)

    assert [answer.status_code for answer in answers] == [201, 201]
    await at.assert_agreement()
    for role in ("user", "tool"):
        question = {"query": SHARED_TEXT[:80], "roles": [role], "top_k": 50}
        hits = (await at.two.post("/v1/recall", json=question)).json()["hits"]
        assert SHARED_TEXT in [hit["text"] for hit in hits], role


SHARED_TEXT = "The failover of the billing database took eleven minutes because the standby lagged behind by four segments. " * 2
SHARED_CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call_9", "type": "function", "function": {"name": "notes", "arguments": "{}"}}],
}
