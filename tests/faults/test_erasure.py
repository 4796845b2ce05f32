"""An erasure that fails anywhere: what is marked is unreachable at once and goes, and what was not marked stands whole."""

from __future__ import annotations

import asyncio

import pytest

from coatcheck.ops import faults
from tests.faults.erased import assert_unreachable, assert_whole, handed, own_segments
from tests.faults.pair import Scene, stalled
from tests.faults.points import named

pytestmark = pytest.mark.asyncio(loop_scope="module")

AFTER_THE_MARK = [name for name in named("erasure") if name != "inside-erase-mark"]
OUTSIDE = named("erasure", in_transaction=False)
THAT_CAN_BE_HELD = [name for name in AFTER_THE_MARK if name != "inside-journal"]


async def test_before_its_mark_stands_an_erasure_that_fails_has_erased_nothing(at: Scene) -> None:
    one, other = await handed(at.one, "alpha"), await handed(at.one, "beta")
    faults.arm("inside-erase-mark=raise@1")

    failed = await at.one.delete(one.manifest)

    assert failed.status_code == 500
    await assert_whole(at, one)
    await assert_whole(at, other)
    await at.assert_agreement()


@pytest.mark.parametrize("what", ["session", "manifest"])
@pytest.mark.parametrize("point", AFTER_THE_MARK)
async def test_T25_after_an_error_at_any_later_point_nothing_comes_back_and_the_other_app_finishes_it(
    at: Scene, point: str, what: str
) -> None:
    one, other = await handed(at.one, "alpha"), await handed(at.one, "beta")
    segments = await own_segments(at.one, one)
    faults.arm(f"{point}=raise@1")

    failed = await at.one.delete(one.session if what == "session" else one.manifest)

    assert failed.status_code == 500
    await assert_unreachable(at, one, segments, session_too=what == "session")
    await at.assert_agreement()
    assert (await at.two.get(one.manifest)).status_code == 410
    if what == "session":
        assert (await at.texts(), await at.points()) == (0, 0)
    else:
        await assert_whole(at, other)


@pytest.mark.parametrize(("point", "what"), [*((name, "manifest") for name in THAT_CAN_BE_HELD), ("after-journal", "session")])
async def test_after_a_cancellation_at_any_later_point_the_other_app_finishes_it(at: Scene, point: str, what: str) -> None:
    one, other = await handed(at.one, "alpha"), await handed(at.one, "beta")
    segments = await own_segments(at.one, one)
    async with faults.held(point, first_alone=True) as hold:
        erasing = asyncio.create_task(at.one.delete(one.session if what == "session" else one.manifest))
        await hold.reached()
        erasing.cancel()
        await asyncio.wait({erasing})

    await assert_unreachable(at, one, segments, session_too=what == "session")

    await at.assert_agreement()
    if what == "session":
        assert (await at.texts(), await at.points()) == (0, 0)
    else:
        await assert_whole(at, other)


@pytest.mark.parametrize(("point", "what"), [*((name, "manifest") for name in OUTSIDE), ("after-points-erased", "session")])
async def test_an_erasure_that_stands_still_is_finished_by_another_and_may_wake_up_late(at: Scene, point: str, what: str) -> None:
    one, other = await handed(at.one, "alpha"), await handed(at.one, "beta")
    segments = await own_segments(at.one, one)
    async with stalled(point) as hold:
        erasing = asyncio.create_task(at.one.delete(one.session if what == "session" else one.manifest))
        await hold.reached()
        await assert_unreachable(at, one, segments, session_too=what == "session")
        await at.settled()
        hold.release()
        late = await erasing

    assert late.status_code == 204
    await at.assert_agreement()
    await assert_unreachable(at, one, segments, session_too=what == "session")
    if what == "session":
        assert (await at.texts(), await at.points()) == (0, 0)
    else:
        await assert_whole(at, other)
