"""Readers of a session that change again while the index follows: it follows to the last, and not to each."""

from __future__ import annotations

import asyncio

import pytest

from coatcheck.memory.reconcile import BATCH
from tests.faults.pair import Scene
from tests.windows import request

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def session_of(at: Scene) -> str:
    return f"/v1/sessions/{(await at.one.post('/v1/compactions', json=request('s'))).json()['session_id']}"


async def test_the_index_follows_many_changes_that_wait_by_a_few_steps(at: Scene) -> None:
    path = await session_of(at)
    for number in range(3 * BATCH):
        await at.one.patch(path, json={"visibility": ("public", "conversation")[number % 2]})
    followed = at.pair.index.acl_changes

    await at.settled()

    assert at.pair.index.acl_changes - followed <= BATCH
    await at.assert_agreement()


async def test_who_writes_the_readers_of_before_late_leaves_those_of_now(at: Scene) -> None:
    """Another owner has written them meanwhile, and has nothing left to do."""
    path = await session_of(at)
    await at.one.patch(path, json={"visibility": "public"})
    async with at.pair.index.first_write_held() as hold:
        late = asyncio.create_task(at.pair.first.use_cases.reconciler.drain_tenant(at.caller.tenant_id))
        await hold.reached()
        await at.two.patch(path, json={"visibility": "conversation"})
        await at.reconcile_now("acl")
        owed_to_the_other = len(await at.owed())
        hold.release()
        await late

    assert owed_to_the_other == 1
    await at.assert_agreement()
